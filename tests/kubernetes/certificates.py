"""A certificate authority and its certificates, made with openssl."""
import pathlib
import subprocess
import time


class Authority:
    def __init__(self, folder, name="berth-test"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cert, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        _openssl("req", "-x509", *_NEW_KEY, "-days", "30", "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    @classmethod
    def of(cls, folder):
        """The one that was made in the folder."""
        out = cls.__new__(cls)
        out.folder = pathlib.Path(folder)
        out.cert, out.key = out.folder / "ca.crt", out.folder / "ca.key"
        return out

    def client_until(self, file, user, end):
        """(certificate, key) of a user, until that second of Unix time."""
        cert, key, request = (self.folder / f"{file}.{kind}" for kind in ("crt", "key", "csr"))
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={user}", "-keyout", key, "-out", request)
        settings, index = self.folder / f"{file}.cnf", self.folder / f"{file}.index"
        index.write_text("")
        settings.write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {index}\nnew_certs_dir = {self.folder}\nrand_serial = yes\n"
                            "default_md = sha256\npolicy = any\nx509_extensions = client\n[any]\ncommonName = supplied\n"
                            "[client]\nextendedKeyUsage = clientAuth\n")
        _openssl("ca", "-batch", "-notext", "-config", settings, "-cert", self.cert, "-keyfile", self.key, "-in", request, "-out", cert,
                 "-startdate", _openssl_time(end - 3600), "-enddate", _openssl_time(end))
        return cert, key

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


def _openssl_time(seconds):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(seconds))


def _openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("openssl " + str(words[0]) + ": " + done.stderr.strip())
