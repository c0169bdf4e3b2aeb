#!/usr/bin/env python3
"""Into a simulated pod nobody gets, and kubectl says why; a pod's condition says that it has a node, whoever gave it one."""
import json
import os
import socket
import ssl
import sys

from person import Person, expect, expect_in

NOTHING = "nodes are simulated: nothing runs here"


def nobody_gets_in(person):
    person.run("run", "web", "--image=nginx")
    person.wait("pod/web", "condition=Ready")
    with open(os.path.join(person.dir, "note"), "w") as note:
        note.write("hello")
    for words in (["exec", "web", "--", "ls"], ["exec", "-it", "web", "--", "sh"], ["attach", "web"],
                  ["cp", note.name, "web:/tmp/note"], ["cp", "web:/etc/hostname", note.name + ".back"],
                  ["debug", "web", "--image=busybox"]):
        code, said = person.kubectl_says(*words)
        if words[0] == "debug" and "unknown command" in said:
            continue
        expect("kubectl " + " ".join(words), code != 0, True)
        expect_in("kubectl " + " ".join(words), said, NOTHING)


def upgrade(person, method, path, headers):
    """The answer to a request that wants another protocol."""
    config = json.loads(person.run("config", "view", "--raw", "-o", "json"))
    host, port = config["clusters"][0]["cluster"]["server"].split("//")[1].split(":")
    tls = ssl.create_default_context(cafile=person.dir + "/pki/ca.crt")
    tls.load_cert_chain(person.dir + "/pki/admin.crt", person.dir + "/pki/admin.key")
    with tls.wrap_socket(socket.create_connection((host, int(port)), 10), server_hostname=host) as door:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", *headers, "", ""]
        door.sendall("\r\n".join(lines).encode())
        answer = b""
        while b"}\n" not in answer:
            piece = door.recv(65536)
            if not piece:
                break
            answer += piece
    return answer.decode()


def both_protocols_are_refused(person):
    spdy = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io", "Content-Length: 0"]
    websocket = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: v5.channel.k8s.io"]
    for part in ("exec?command=ls&stdout=true", "attach?stdin=true", "portforward?ports=80", "portforward"):
        for method, headers in (("POST", spdy), ("GET", websocket)):
            answer = upgrade(person, method, "/api/v1/namespaces/default/pods/web/" + part, headers)
            expect(f"{method} {part}", answer.split(" ")[1], "405")
            expect_in(f"{method} {part}", answer, NOTHING)


def port_forward_ends(person):
    """kubectl listens first and asks when somebody connects; it must not hang then."""
    import subprocess
    forward = subprocess.Popen([person.kubectl, "port-forward", "pod/web", ":80"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env=person.env)
    said = forward.communicate(timeout=60)[0]
    expect("kubectl port-forward", forward.returncode != 0, True)
    expect_in("kubectl port-forward", said, NOTHING)


def scheduled(person, name):
    conditions = person.get("pod", name)["status"]["conditions"]
    return [c["status"] for c in conditions if c["type"] == "PodScheduled"]


def a_pod_with_a_node_is_scheduled(person):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%scontainers: [{name: a, image: b}]}\n"
    person.apply(pod % ("named", "nodeName: node-0, "))
    person.apply(pod % ("by-hand", "schedulerName: nobody, "))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "by-hand"}, "target": {"kind": "Node", "name": "node-0"}}
    person.run("create", "--raw", "/api/v1/namespaces/default/pods/by-hand/binding", "-f", "-", stdin=json.dumps(binding))
    person.apply(pod % ("refused", "nodeSelector: {no: where}, "))
    person.wait("pod/refused", "condition=PodScheduled=False")
    binding["metadata"]["name"] = "refused"
    person.run("create", "-f", "-", "--validate=false", stdin=json.dumps(binding))
    for name in ("named", "by-hand", "refused"):
        person.wait("pod/" + name, "condition=Ready")
        expect(name, scheduled(person, name), ["True"])
    person.run("wait", "--for=condition=PodScheduled", "pod/named", "pod/by-hand", "pod/refused", "--timeout=10s")


def test(berth, build):
    with Person(berth, build, "--nodes", "1") as person:
        nobody_gets_in(person)
        both_protocols_are_refused(person)
        port_forward_ends(person)
        a_pod_with_a_node_is_scheduled(person)


test(*sys.argv[1:3])
print("pods: passed")
