"""What the tests of attached processes have in common."""
import time
import urllib.error
import urllib.request

PODS = "/api/v1/namespaces/default/pods"


def check(true, what):
    if not true:
        raise SystemExit("FAILED: " + what)


def until(what, condition, seconds=30):
    """Waits for something to become true; what it was."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)


def create_pods(server, prefix, count, cpu="50m"):
    for i in range(count):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{prefix}-{i}"},
               "spec": {"schedulerName": "berth", "containers": [
                   {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}}
        code, answer = server.ask("POST", PODS, pod)
        check(code == 201, f"pod {prefix}-{i}: {answer}")


def bound(server, prefix):
    _, pods = server.ask("GET", PODS)
    return sum(1 for pod in pods["items"]
               if pod["metadata"]["name"].startswith(prefix + "-") and pod["spec"].get("nodeName"))


def plain(path):
    try:
        with urllib.request.urlopen("http://127.0.0.1:" + path, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
