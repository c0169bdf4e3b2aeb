// A namespace that is deleted takes its contents along; a living one has its default ServiceAccount and CA certificate.
#include "control/pods.h"
#include "control/reconciler.h"

namespace berth::control {
namespace {

class Namespaces final : public Reconciler {
public:
    explicit Namespaces(std::vector<std::string> contents) : contents_(std::move(contents)) {}
    std::string_view name() const override { return "namespace"; }
    std::string resource() const override { return "namespaces"; }
    std::vector<std::string> watches() const override {
        std::vector<std::string> all = contents_;
        all.push_back("namespaces");
        return all;
    }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == "namespaces") return {{"", object.meta.name}};
        const auto space = objects.find("namespaces", "", object.meta.ns);
        if (!space || !is_deleting(*space)) return {};
        return {{"", object.meta.ns}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto space = objects.find("namespaces", "", target.name);
        if (!space || !is_deleting(*space)) return {};
        Reconciled outcome;
        bool empty = true;
        for (const auto& resource : contents_) {
            for (const auto& object : objects.list(resource, target.name)) {
                empty = false;
                if (is_deleting(*object)) continue;
                outcome.writes.push_back(delete_object(resource, object->meta));
            }
        }
        if (empty) {
            Write write{Write::Verb::Replace, "namespaces", "v1", "", target.name, "finalize", space->document()};
            write.uid = space->meta.uid;
            base::object_at(write.body, {"spec"})["finalizers"] = JsonArray();
            outcome.writes.push_back(std::move(write));
        }
        return outcome;
    }

private:
    std::vector<std::string> contents_;
};

class NamespaceDefaults final : public Reconciler {
public:
    explicit NamespaceDefaults(std::string ca_certificate) : ca_certificate_(std::move(ca_certificate)) {}
    std::string_view name() const override { return "namespace-defaults"; }
    std::string resource() const override { return "namespaces"; }
    std::vector<std::string> watches() const override { return {"namespaces", "serviceaccounts", "configmaps"}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "namespaces") return {{"", object.meta.name}};
        const bool ours = resource == "serviceaccounts" ? object.meta.name == kAccount : object.meta.name == kConfig;
        if (!ours) return {};
        return {{"", object.meta.ns}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto space = objects.find("namespaces", "", target.name);
        if (!space || is_deleting(*space)) return {};
        Reconciled outcome;
        if (!objects.find("serviceaccounts", target.name, std::string(kAccount))) {
            outcome.writes.push_back(make("serviceaccounts", "ServiceAccount", target.name, kAccount, {}));
        }
        if (!objects.find("configmaps", target.name, std::string(kConfig))) {
            outcome.writes.push_back(make("configmaps", "ConfigMap", target.name, kConfig,
                                          {{"data", JsonObject{{"ca.crt", ca_certificate_}}}}));
        }
        return outcome;
    }

private:
    static constexpr std::string_view kAccount = "default";
    static constexpr std::string_view kConfig = "kube-root-ca.crt";

    static Write make(const std::string& resource, std::string_view kind, const std::string& ns, std::string_view name,
                      JsonObject rest) {
        rest["kind"] = kind;
        rest["apiVersion"] = "v1";
        rest["metadata"] = JsonObject{{"name", name}, {"namespace", ns}};
        return model::create_object(resource, ns, std::move(rest));
    }

    std::string ca_certificate_;
};

}  // namespace

std::unique_ptr<Reconciler> namespace_reconciler(std::vector<std::string> namespaced_resources) {
    return std::make_unique<Namespaces>(std::move(namespaced_resources));
}

std::unique_ptr<Reconciler> namespace_defaults_reconciler(std::string ca_certificate) {
    return std::make_unique<NamespaceDefaults>(std::move(ca_certificate));
}

}  // namespace berth::control
