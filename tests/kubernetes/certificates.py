"""A certificate authority and its certificates, made with openssl."""
import pathlib
import subprocess


class Authority:
    def __init__(self, folder, name="berth-test"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cert, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        _openssl("req", "-x509", *_NEW_KEY, "-days", "30", "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    def serving(self, name, hosts):
        """(certificate, key) of a server that is reached under any of the hosts."""
        listed = ",".join(("IP:" if host[0].isdigit() else "DNS:") + host for host in hosts)
        return self._sign(name, f"/CN={name}", f"subjectAltName={listed}\nextendedKeyUsage=serverAuth\n")

    def client(self, file, user, group=None):
        """(certificate, key) of a user."""
        subject = f"/O={group}/CN={user}" if group else f"/CN={user}"
        return self._sign(file, subject, "extendedKeyUsage=clientAuth\n")

    def _sign(self, file, subject, extensions):
        cert, key, request = (self.folder / f"{file}.{end}" for end in ("crt", "key", "csr"))
        _openssl("req", *_NEW_KEY, "-subj", subject, "-keyout", key, "-out", request)
        (self.folder / f"{file}.ext").write_text(extensions)
        _openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", "7",
                 "-extfile", self.folder / f"{file}.ext", "-out", cert)
        return cert, key


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("openssl " + str(words[0]) + ": " + done.stderr.strip())
