#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>

#include "link/iri_convert.h"
#include "link/iri_tls.h"
#include "machine/v1alpha1/machine.grpc.pb.h"

namespace berth::link {
namespace {

Error error_of(const grpc::Status& status) {
    Reason reason = Reason::ServiceUnavailable;
    switch (status.error_code()) {
        case grpc::StatusCode::NOT_FOUND:
            reason = Reason::NotFound;
            break;
        case grpc::StatusCode::UNIMPLEMENTED:
            reason = Reason::MethodNotAllowed;
            break;
        case grpc::StatusCode::INVALID_ARGUMENT:
            reason = Reason::BadRequest;
            break;
        case grpc::StatusCode::FAILED_PRECONDITION:
            reason = Reason::Conflict;
            break;
        case grpc::StatusCode::RESOURCE_EXHAUSTED:
            reason = Reason::TooManyRequests;
            break;
        case grpc::StatusCode::DEADLINE_EXCEEDED:
            reason = Reason::Timeout;
            break;
        default:
            break;
    }
    return {reason, status.error_message()};
}

template <class Request, class Response>
struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
};

using Stub = iri::MachineRuntime::Stub;

class Client final : public MachineRuntime {
public:
    Client(std::shared_ptr<grpc::Channel> channel, base::Duration deadline)
        : channel_(std::move(channel)), stub_(iri::MachineRuntime::NewStub(channel_)), deadline_(deadline) {}

    void version(Answered<Version> answer) override;
    void status(Answered<std::vector<model::IriClassStatus>> answer) override;
    void list_machines(model::IriFilter filter, Answered<std::vector<model::IriMachine>> answer) override;
    void create_machine(model::IriMachine machine, Answered<model::IriMachine> answer) override;
    void delete_machine(std::string id, Answered<bool> answer) override;
    void update_power(std::string id, bool on, Answered<bool> answer) override;
    void update_annotations(std::string id, Labels annotations, Answered<bool> answer) override;
    void put_volume(std::string id, model::IriVolume volume, bool attach, Answered<bool> answer) override;
    void detach_volume(std::string id, std::string name, Answered<bool> answer) override;
    void attach_interface(std::string id, model::IriNetworkInterface nic, Answered<bool> answer) override;
    void detach_interface(std::string id, std::string name, Answered<bool> answer) override;
    void list_events(model::IriEventFilter filter, Answered<std::vector<model::IriEvent>> answer) override;
    void list_reservations(model::IriFilter filter, Answered<std::vector<model::IriReservation>> answer) override;
    void create_reservation(model::IriReservation reservation, Answered<model::IriReservation> answer) override;
    void delete_reservation(std::string id, Answered<bool> answer) override;
    void renew_reservation(std::string id, Answered<model::IriReservation> answer) override;
    void confirm_reservation(std::string id, uint64_t attempt, Answered<model::IriReservation> answer) override;
    std::unique_ptr<Watch> watch(std::function<void(const RuntimeChange&)> change,
                                 std::function<void(Error)> ended) override;

private:
    // Sends a request; `read` makes the value of its response.
    template <class T, class Request, class Response, class Send, class Read>
    void call(Request request, Answered<T> answer, Send send, Read read) {
        auto call = std::make_shared<Call<Request, Response>>();
        call->request = std::move(request);
        call->context.set_deadline(gpr_time_from_nanos(deadline_.count(), GPR_TIMESPAN));  // from when it begins
        auto* out = call.get();
        // The channel lives at least as long as its calls.
        send(*out, [call, answer = std::move(answer), read, keep = channel_](const grpc::Status& status) {
            if (!status.ok()) return answer(error_of(status));
            answer(read(call->response));
        });
    }

    const std::shared_ptr<grpc::Channel> channel_;
    const std::unique_ptr<Stub> stub_;
    const base::Duration deadline_;
};

// One call of the service: its name says the types.
#define BERTH_IRI_CALL(NAME, TYPE, REQUEST, ANSWER, ...)                                                         \
    call<TYPE, iri::NAME##Request, iri::NAME##Response>(                                                         \
        REQUEST, ANSWER,                                                                                         \
        [this](auto& one, auto done) { stub_->async()->NAME(&one.context, &one.request, &one.response, done); }, \
        __VA_ARGS__)

constexpr auto kDone = [](const auto&) -> Result<bool> { return true; };

template <class Response>
Result<model::IriReservation> reservation_in(const Response& response) {
    return read(response.reservation());
}

template <class Filter>
void put_filter(const model::IriFilter& filter, Filter& out) {
    out.set_id(filter.id);
    put_map(filter.selector, *out.mutable_label_selector());
}

void Client::version(Answered<Version> answer) {
    BERTH_IRI_CALL(Version, Version, {}, std::move(answer), [](const auto& response) -> Result<Version> {
        return Version{response.runtime_name(), response.runtime_version(), response.layer()};
    });
}

void Client::status(Answered<std::vector<model::IriClassStatus>> answer) {
    using All = std::vector<model::IriClassStatus>;
    BERTH_IRI_CALL(Status, All, {}, std::move(answer), [](const auto& response) -> Result<All> {
        All out;
        for (const auto& each : response.machine_class_status()) out.push_back(read(each));
        return out;
    });
}

void Client::list_machines(model::IriFilter filter, Answered<std::vector<model::IriMachine>> answer) {
    using All = std::vector<model::IriMachine>;
    iri::ListMachinesRequest request;
    put_filter(filter, *request.mutable_filter());
    BERTH_IRI_CALL(ListMachines, All, std::move(request), std::move(answer), [](const auto& response) -> Result<All> {
        All out;
        for (const auto& each : response.machines()) out.push_back(read(each));
        return out;
    });
}

void Client::create_machine(model::IriMachine machine, Answered<model::IriMachine> answer) {
    iri::CreateMachineRequest request;
    put(machine, *request.mutable_machine());
    BERTH_IRI_CALL(CreateMachine, model::IriMachine, std::move(request), std::move(answer),
                   [](const auto& response) -> Result<model::IriMachine> { return read(response.machine()); });
}

void Client::delete_machine(std::string id, Answered<bool> answer) {
    iri::DeleteMachineRequest request;
    request.set_machine_id(id);
    BERTH_IRI_CALL(DeleteMachine, bool, std::move(request), std::move(answer), kDone);
}

void Client::update_power(std::string id, bool on, Answered<bool> answer) {
    iri::UpdateMachinePowerRequest request;
    request.set_machine_id(id);
    request.set_power(on ? iri::POWER_ON : iri::POWER_OFF);
    BERTH_IRI_CALL(UpdateMachinePower, bool, std::move(request), std::move(answer), kDone);
}

void Client::update_annotations(std::string id, Labels annotations, Answered<bool> answer) {
    iri::UpdateMachineAnnotationsRequest request;
    request.set_machine_id(id);
    put_map(annotations, *request.mutable_annotations());
    BERTH_IRI_CALL(UpdateMachineAnnotations, bool, std::move(request), std::move(answer), kDone);
}

void Client::put_volume(std::string id, model::IriVolume volume, bool attach, Answered<bool> answer) {
    if (attach) {
        iri::AttachVolumeRequest request;
        request.set_machine_id(id);
        put(volume, *request.mutable_volume());
        BERTH_IRI_CALL(AttachVolume, bool, std::move(request), std::move(answer), kDone);
    } else {
        iri::UpdateVolumeRequest request;
        request.set_machine_id(id);
        put(volume, *request.mutable_volume());
        BERTH_IRI_CALL(UpdateVolume, bool, std::move(request), std::move(answer), kDone);
    }
}

void Client::detach_volume(std::string id, std::string name, Answered<bool> answer) {
    iri::DetachVolumeRequest request;
    request.set_machine_id(id);
    request.set_name(name);
    BERTH_IRI_CALL(DetachVolume, bool, std::move(request), std::move(answer), kDone);
}

void Client::attach_interface(std::string id, model::IriNetworkInterface nic, Answered<bool> answer) {
    iri::AttachNetworkInterfaceRequest request;
    request.set_machine_id(id);
    put(nic, *request.mutable_network_interface());
    BERTH_IRI_CALL(AttachNetworkInterface, bool, std::move(request), std::move(answer), kDone);
}

void Client::detach_interface(std::string id, std::string name, Answered<bool> answer) {
    iri::DetachNetworkInterfaceRequest request;
    request.set_machine_id(id);
    request.set_name(name);
    BERTH_IRI_CALL(DetachNetworkInterface, bool, std::move(request), std::move(answer), kDone);
}

void Client::list_events(model::IriEventFilter filter, Answered<std::vector<model::IriEvent>> answer) {
    using All = std::vector<model::IriEvent>;
    iri::ListEventsRequest request;
    put_filter(filter.about, *request.mutable_filter());
    request.mutable_filter()->set_events_from_time(filter.from);
    request.mutable_filter()->set_events_to_time(filter.to);
    BERTH_IRI_CALL(ListEvents, All, std::move(request), std::move(answer), [](const auto& response) -> Result<All> {
        All out;
        for (const auto& each : response.events()) out.push_back(read(each));
        return out;
    });
}

void Client::list_reservations(model::IriFilter filter, Answered<std::vector<model::IriReservation>> answer) {
    using All = std::vector<model::IriReservation>;
    iri::ListReservationsRequest request;
    put_filter(filter, *request.mutable_filter());
    BERTH_IRI_CALL(ListReservations, All, std::move(request), std::move(answer),
                   [](const auto& response) -> Result<All> {
                       All out;
                       for (const auto& each : response.reservations()) out.push_back(TRY(read(each)));
                       return out;
                   });
}

void Client::create_reservation(model::IriReservation reservation, Answered<model::IriReservation> answer) {
    iri::CreateReservationRequest request;
    put(reservation, false, *request.mutable_reservation());
    // An answer about somebody else's reservation is none.
    const auto lineage = reservation.ask.lineage;
    BERTH_IRI_CALL(CreateReservation, model::IriReservation, std::move(request), std::move(answer),
                   [lineage](const auto& response) -> Result<model::IriReservation> {
                       auto out = TRY(read(response.reservation()));
                       const auto& said = out.ask.lineage;
                       if (out.meta.id.empty() || (!said.empty() && said != lineage))
                           return base::Error{
                               Reason::ServiceUnavailable,
                               fmt::format("the runtime answered for \"{}\", asked for \"{}\"", said, lineage)};
                       return out;
                   });
}

void Client::delete_reservation(std::string id, Answered<bool> answer) {
    iri::DeleteReservationRequest request;
    request.set_reservation_id(id);
    BERTH_IRI_CALL(DeleteReservation, bool, std::move(request), std::move(answer), kDone);
}

void Client::renew_reservation(std::string id, Answered<model::IriReservation> answer) {
    iri::RenewReservationRequest request;
    request.set_reservation_id(id);
    BERTH_IRI_CALL(RenewReservation, model::IriReservation, std::move(request), std::move(answer),
                   [](const auto& response) { return reservation_in(response); });
}

void Client::confirm_reservation(std::string id, uint64_t attempt, Answered<model::IriReservation> answer) {
    iri::ConfirmReservationRequest request;
    request.set_reservation_id(id);
    request.set_attempt(attempt);
    BERTH_IRI_CALL(ConfirmReservation, model::IriReservation, std::move(request), std::move(answer),
                   [](const auto& response) { return reservation_in(response); });
}

#undef BERTH_IRI_CALL

// A stream; it lives until both gRPC and its owner have let go. Once the owner has, nobody is called any more.
class Stream final : public grpc::ClientReadReactor<iri::WatchReservationsResponse> {
public:
    Stream(std::function<void(const RuntimeChange&)> change, std::function<void(Error)> ended)
        : change_(std::move(change)), ended_(std::move(ended)) {}

    void start(Stub& stub, std::shared_ptr<Stream> self) {
        self_ = std::move(self);
        stub.async()->WatchReservations(&context_, &request_, this);
        StartRead(&response_);
        StartCall();
    }
    void leave() {
        {
            const std::lock_guard lock(mutex_);
            change_ = nullptr;
            ended_ = nullptr;
        }
        context_.TryCancel();
    }

private:
    void OnReadDone(bool ok) override {
        if (!ok) return;
        {
            const std::lock_guard lock(mutex_);
            RuntimeChange change;
            if (change_ && read_change(change)) change_(change);
        }
        StartRead(&response_);
    }
    bool read_change(RuntimeChange& out) {
        if (response_.has_machine()) {
            out.what = RuntimeChange::What::Machine;
            out.machine = read(response_.machine());
            return true;
        }
        if (response_.has_reservation()) {
            auto value = read(response_.reservation());
            if (value) out.reservation = std::move(*value);
            return value.ok();
        }
        out.what = RuntimeChange::What::Gone;
        out.reservation.meta.id = response_.gone();
        return response_.change_case() == iri::WatchReservationsResponse::kGone;
    }
    void OnDone(const grpc::Status& status) override {
        {
            const std::lock_guard lock(mutex_);
            if (ended_) ended_(error_of(status));
        }
        const auto last = std::move(self_);
    }

    std::mutex mutex_;
    std::function<void(const RuntimeChange&)> change_;
    std::function<void(Error)> ended_;
    grpc::ClientContext context_;
    iri::WatchReservationsRequest request_;
    iri::WatchReservationsResponse response_;
    std::shared_ptr<Stream> self_;
};

class Watching final : public MachineRuntime::Watch {
public:
    explicit Watching(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    ~Watching() override { stream_->leave(); }

private:
    const std::shared_ptr<Stream> stream_;
};

std::unique_ptr<MachineRuntime::Watch> Client::watch(std::function<void(const RuntimeChange&)> change,
                                                     std::function<void(Error)> ended) {
    auto stream = std::make_shared<Stream>(std::move(change), std::move(ended));
    stream->start(*stub_, stream);
    return std::make_unique<Watching>(std::move(stream));
}

}  // namespace

Result<std::shared_ptr<MachineRuntime>> connect_iri(const std::string& address, const IriTls& tls,
                                                    base::Duration deadline) {
    const auto where = TRY(read_iri_address(address));
    const auto keys = TRY(read_iri_keys(address, where, tls));
    TRY(threads_for_grpc());
    auto credentials = grpc::InsecureChannelCredentials();
    if (keys.given()) credentials = grpc::SslCredentials({keys.ca, keys.key, keys.certificate});
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveMillis);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveMillis / 2);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    if (!tls.runtime.empty()) arguments.SetSslTargetNameOverride(tls.runtime);
    // Nobody's proxy stands between a poollet and its runtime, and each has a connection of its own.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return std::shared_ptr<MachineRuntime>(
        std::make_shared<Client>(grpc::CreateCustomChannel(where.target, credentials, arguments), deadline));
}

}  // namespace berth::link
