#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include <deque>
#include <mutex>

#include "base/log.h"
#include "link/iri_answers.h"
#include "link/iri_convert.h"
#include "link/iri_gate.h"
#include "link/iri_tls.h"
#include "machine/v1alpha1/machine.grpc.pb.h"

namespace berth::link {
namespace {

constexpr size_t kMostWatchers = 64;
constexpr size_t kMostWaiting = 2 << 20;         // bytes of changes that a slow watcher has not read
constexpr size_t kMostHeld = size_t{128} << 20;  // by answers that nobody has taken

grpc::Status status_of(const Error& error) {
    grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE;
    switch (error.reason) {
        case Reason::NotFound:
            code = grpc::StatusCode::NOT_FOUND;
            break;
        case Reason::MethodNotAllowed:
            code = grpc::StatusCode::UNIMPLEMENTED;
            break;
        case Reason::BadRequest:
        case Reason::Invalid:
            code = grpc::StatusCode::INVALID_ARGUMENT;
            break;
        case Reason::Conflict:
        case Reason::AlreadyExists:
            code = grpc::StatusCode::FAILED_PRECONDITION;
            break;
        case Reason::TooManyRequests:
            code = grpc::StatusCode::RESOURCE_EXHAUSTED;
            break;
        case Reason::Timeout:
            code = grpc::StatusCode::DEADLINE_EXCEEDED;
            break;
        default:
            break;
    }
    return {code, error.message};
}

// Ends a call with what was answered; `write` puts the value into the response.
template <class T, class Write>
Answered<T> finish(Answers::Call* reactor, Write write) {
    return [reactor, write](Result<T> answer) {
        if (!answer) return reactor->refuse(status_of(answer.error()));
        write(*answer);
        reactor->answer();
    };
}

Answered<bool> finish(Answers::Call* reactor) {
    return finish<bool>(reactor, [](bool) {});
}

grpc::ServerUnaryReactor* refuse(grpc::ServerUnaryReactor* reactor, const std::string& words) {
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, words});
    return reactor;
}

// One watcher's stream. It goes when gRPC is done with it; the watch may end before.
class Stream final : public grpc::ServerWriteReactor<iri::WatchReservationsResponse> {
public:
    Stream(MachineRuntime& runtime, std::function<void()> done) : done_(std::move(done)) {
        watch_ = runtime.watch([this](const RuntimeChange& change) { push(change); },
                               [this](const Error& error) { end(status_of(error)); });
    }

    void push(const RuntimeChange& change) {
        const std::lock_guard lock(mutex_);
        if (ended_) return;
        if (waiting_bytes_ >= kMostWaiting)
            return end_locked({grpc::StatusCode::RESOURCE_EXHAUSTED, "it reads too slowly"});
        waiting_.emplace_back();
        auto& out = waiting_.back();
        switch (change.what) {
            case RuntimeChange::What::Machine:
                put(change.machine, *out.mutable_machine());
                break;
            case RuntimeChange::What::Reservation:
                put(change.reservation, false, *out.mutable_reservation());
                break;
            case RuntimeChange::What::Gone:
                out.set_gone(change.reservation.meta.id);
                break;
        }
        waiting_bytes_ += out.ByteSizeLong();
        if (waiting_.size() == 1) StartWrite(&waiting_.front());
    }
    void end(const grpc::Status& status) {
        const std::lock_guard lock(mutex_);
        end_locked(status);
    }

private:
    void end_locked(const grpc::Status& status) {
        if (std::exchange(ended_, true)) return;
        Finish(status);
    }
    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        if (!waiting_.empty()) {
            waiting_bytes_ -= waiting_.front().ByteSizeLong();
            waiting_.pop_front();
        }
        if (!ok) return end_locked(grpc::Status::CANCELLED);
        if (!ended_ && !waiting_.empty()) StartWrite(&waiting_.front());
    }
    void OnCancel() override { end(grpc::Status::CANCELLED); }
    void OnDone() override {
        watch_.reset();  // nobody calls us after this
        done_();
        delete this;
    }

    std::mutex mutex_;
    std::deque<iri::WatchReservationsResponse> waiting_;  // the first is being written
    size_t waiting_bytes_ = 0;
    bool ended_ = false;
    const std::function<void()> done_;
    std::unique_ptr<MachineRuntime::Watch> watch_;
};

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

class Service final : public iri::MachineRuntime::CallbackService {
public:
    explicit Service(link::MachineRuntime& runtime) : runtime_(runtime) {}
    Answers& answers() { return answers_; }

    Reactor* Version(Context* context, const iri::VersionRequest*, iri::VersionResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        runtime_.version(finish<link::MachineRuntime::Version>(reactor, [out](const auto& version) {
            out->set_runtime_name(version.name);
            out->set_runtime_version(version.version);
            out->set_layer(version.layer);
        }));
        return reactor;
    }
    Reactor* Status(Context* context, const iri::StatusRequest*, iri::StatusResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        runtime_.status(finish<std::vector<model::IriClassStatus>>(reactor, [out](const auto& all) {
            for (const auto& each : all) put(each, *out->add_machine_class_status());
        }));
        return reactor;
    }
    Reactor* ListEvents(Context* context, const iri::ListEventsRequest* in, iri::ListEventsResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        const auto& filter = in->filter();
        reactor->in_turn(
            [this, reactor, out,
             asked = model::IriEventFilter{read_filter(filter), filter.events_from_time(), filter.events_to_time()}] {
                runtime_.list_events(asked, finish<std::vector<model::IriEvent>>(reactor, [out](const auto& all) {
                                         for (const auto& each : all) put(each, *out->add_events());
                                     }));
            });
        return reactor;
    }
    Reactor* ListMachines(Context* context, const iri::ListMachinesRequest* in,
                          iri::ListMachinesResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        reactor->in_turn([this, reactor, out, filter = read_filter(in->filter())] {
            runtime_.list_machines(filter, finish<std::vector<model::IriMachine>>(reactor, [out](const auto& all) {
                                       for (const auto& each : all) put(each, *out->add_machines());
                                   }));
        });
        return reactor;
    }
    Reactor* CreateMachine(Context* context, const iri::CreateMachineRequest* in,
                           iri::CreateMachineResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        runtime_.create_machine(read(in->machine()), finish<model::IriMachine>(reactor, [out](const auto& machine) {
                                    put(machine, *out->mutable_machine());
                                }));
        return reactor;
    }
    Reactor* DeleteMachine(Context* context, const iri::DeleteMachineRequest* in,
                           iri::DeleteMachineResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.delete_machine(in->machine_id(), finish(reactor));
        return reactor;
    }
    Reactor* UpdateMachineAnnotations(Context* context, const iri::UpdateMachineAnnotationsRequest* in,
                                      iri::UpdateMachineAnnotationsResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.update_annotations(in->machine_id(), read_map(in->annotations()), finish(reactor));
        return reactor;
    }
    Reactor* UpdateMachinePower(Context* context, const iri::UpdateMachinePowerRequest* in,
                                iri::UpdateMachinePowerResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.update_power(in->machine_id(), in->power() != iri::POWER_OFF, finish(reactor));
        return reactor;
    }
    Reactor* AttachVolume(Context* context, const iri::AttachVolumeRequest* in, iri::AttachVolumeResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.put_volume(in->machine_id(), read(in->volume()), true, finish(reactor));
        return reactor;
    }
    Reactor* UpdateVolume(Context* context, const iri::UpdateVolumeRequest* in, iri::UpdateVolumeResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.put_volume(in->machine_id(), read(in->volume()), false, finish(reactor));
        return reactor;
    }
    Reactor* DetachVolume(Context* context, const iri::DetachVolumeRequest* in, iri::DetachVolumeResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.detach_volume(in->machine_id(), in->name(), finish(reactor));
        return reactor;
    }
    Reactor* AttachNetworkInterface(Context* context, const iri::AttachNetworkInterfaceRequest* in,
                                    iri::AttachNetworkInterfaceResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.attach_interface(in->machine_id(), read(in->network_interface()), finish(reactor));
        return reactor;
    }
    Reactor* DetachNetworkInterface(Context* context, const iri::DetachNetworkInterfaceRequest* in,
                                    iri::DetachNetworkInterfaceResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.detach_interface(in->machine_id(), in->name(), finish(reactor));
        return reactor;
    }
    Reactor* ListReservations(Context* context, const iri::ListReservationsRequest* in,
                              iri::ListReservationsResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        reactor->in_turn([this, reactor, out, filter = read_filter(in->filter())] {
            runtime_.list_reservations(filter,
                                       finish<std::vector<model::IriReservation>>(reactor, [out](const auto& all) {
                                           for (const auto& each : all) put(each, false, *out->add_reservations());
                                       }));
        });
        return reactor;
    }
    Reactor* CreateReservation(Context* context, const iri::CreateReservationRequest* in,
                               iri::CreateReservationResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        auto wanted = read(in->reservation());
        if (!wanted) return refuse(reactor, wanted.error().message);
        const bool three_states = wanted->ask.lineage.empty();
        runtime_.create_reservation(
            std::move(*wanted), finish<model::IriReservation>(reactor, [out, three_states](const auto& reservation) {
                put(reservation, three_states, *out->mutable_reservation());
            }));
        return reactor;
    }
    Reactor* DeleteReservation(Context* context, const iri::DeleteReservationRequest* in,
                               iri::DeleteReservationResponse*) override {
        auto* reactor = answers_.begin(*context);
        runtime_.delete_reservation(in->reservation_id(), finish(reactor));
        return reactor;
    }
    Reactor* RenewReservation(Context* context, const iri::RenewReservationRequest* in,
                              iri::RenewReservationResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        runtime_.renew_reservation(in->reservation_id(),
                                   finish<model::IriReservation>(reactor, [out](const auto& value) {
                                       put(value, false, *out->mutable_reservation());
                                   }));
        return reactor;
    }
    Reactor* ConfirmReservation(Context* context, const iri::ConfirmReservationRequest* in,
                                iri::ConfirmReservationResponse* out) override {
        auto* reactor = answers_.begin(*context, out);
        runtime_.confirm_reservation(in->reservation_id(), in->attempt(),
                                     finish<model::IriReservation>(reactor, [out](const auto& value) {
                                         put(value, false, *out->mutable_reservation());
                                     }));
        return reactor;
    }
    grpc::ServerWriteReactor<iri::WatchReservationsResponse>* WatchReservations(
        Context*, const iri::WatchReservationsRequest*) override {
        if (watchers_.fetch_add(1) >= kMostWatchers) {
            auto* full = new Refused;
            watchers_.fetch_sub(1);
            full->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch"});
            return full;
        }
        return new Stream(runtime_, [this] { watchers_.fetch_sub(1); });
    }

private:
    class Refused final : public grpc::ServerWriteReactor<iri::WatchReservationsResponse> {
        void OnDone() override { delete this; }
    };

    link::MachineRuntime& runtime_;
    Answers answers_{kMostHeld};
    std::atomic<size_t> watchers_ = 0;
};

// What the library has to say goes into our log; what matters of it is told as an Error.
void log_for_grpc(gpr_log_func_args* said) {
    base::log_debug("gRPC", {{"message", std::string(said->message)}});
}

class Serving final : public IriServer {
public:
    explicit Serving(MachineRuntime& runtime) : service_(runtime) {}
    ~Serving() override {
        // Whoever is still answered is cut off; he asks again elsewhere.
        gate_.reset();
        if (server_ != nullptr) server_->Shutdown(gpr_time_from_seconds(1, GPR_TIMESPAN));
    }
    int port() const override { return gate_->port(); }

    Status start(const std::string& address, const IriTls& tls, base::Metrics* metrics) {
        gpr_set_log_function(log_for_grpc);
        const auto where = TRY(read_iri_address(address));
        const auto keys = TRY(read_iri_keys(address, where, tls));
        TRY(threads_for_grpc());
        if (metrics != nullptr) service_.answers().count(*metrics);
        grpc::ServerBuilder builder;
        builder.RegisterService(&service_);
        builder.SetMaxReceiveMessageSize(kMostMessageBytes);
        // A message of a few KiB may be one of gigabytes when it is unpacked.
        builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
        builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
        grpc::ResourceQuota quota("iri");
        quota.SetMaxThreads(16);
        quota.Resize(size_t{256} << 20);
        builder.SetResourceQuota(quota);
        builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
        builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveMillis);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveMillis / 2);
        builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepAliveMillis / 2);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
        server_ = builder.BuildAndStart();
        if (server_ == nullptr) return base::internal("the gRPC server does not start");
        const auto take = [server = server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); };
        gate_ = TRY(IriGate::start(where, keys, take, metrics));
        return {};
    }

private:
    Service service_;
    std::unique_ptr<grpc::Server> server_;
    std::unique_ptr<IriGate> gate_;
};

}  // namespace

Result<std::unique_ptr<IriServer>> IriServer::start(const std::string& address, const IriTls& tls,
                                                    MachineRuntime& runtime, base::Metrics* metrics) {
    auto out = std::make_unique<Serving>(runtime);
    TRY(out->start(address, tls, metrics));
    return std::unique_ptr<IriServer>(std::move(out));
}

}  // namespace berth::link
