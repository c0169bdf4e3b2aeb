#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "link/iri_grpc.h"
#include "link/wake_event.h"
#include "machine/v1alpha1/machine.grpc.pb.h"
#include "run/fleet_provider.h"

// The wire as IronCore has it from v0.4 on, and what comes over it that nobody should have sent.
namespace berth::fleet_test {
namespace {

namespace iri = ::machine::v1alpha1;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using std::chrono::milliseconds;
using std::chrono::seconds;

// "name=1:string": repeated fields and maps end with "*".
std::string words_of(const FieldDescriptor& field) {
    std::string type = field.type_name();
    if (field.is_map()) {
        const auto& entry = *field.message_type();
        type = fmt::format("{}>{}", entry.field(0)->type_name(), entry.field(1)->type_name());
    } else if (field.message_type() != nullptr) {
        type = field.message_type()->name();
    } else if (field.enum_type() != nullptr) {
        type = field.enum_type()->name();
    }
    return fmt::format("{}={}:{}{}", field.name(), field.number(), type, field.is_repeated() ? "*" : "");
}

std::string words_of(const Descriptor& message) {
    std::string out = message.name() + ":";
    for (int i = 0; i < message.field_count(); ++i) out += " " + words_of(*message.field(i));
    return out;
}

std::vector<std::string> lines_of(const google::protobuf::FileDescriptor& file) {
    std::vector<std::string> out;
    for (int i = 0; i < file.message_type_count(); ++i) out.push_back(words_of(*file.message_type(i)));
    for (int i = 0; i < file.enum_type_count(); ++i) {
        const auto& values = *file.enum_type(i);
        std::string line = values.name() + ":";
        for (int j = 0; j < values.value_count(); ++j)
            line += fmt::format(" {}={}", values.value(j)->name(), values.value(j)->number());
        out.push_back(line);
    }
    return out;
}

// IronCore's, as the specification's appendix has them; then the draft's and ours.
constexpr const char* kTable[] = {
    "ObjectMetadata: id=1:string annotations=2:string>string* labels=3:string>string* generation=4:int64 "
    "created_at=5:int64 deleted_at=6:int64",
    "Event: spec=2:EventSpec",
    "EventSpec: involved_object_meta=1:ObjectMetadata reason=2:string message=3:string type=4:string "
    "event_time=5:int64 action=6:string",
    "Machine: metadata=1:ObjectMetadata spec=2:MachineSpec status=3:MachineStatus",
    "MachineSpec: power=1:Power class=2:string ignition_data=3:bytes volumes=4:Volume* "
    "network_interfaces=5:NetworkInterface* guest_config=6:GuestConfig",
    "GuestConfig: hostname=1:string",
    "MachineStatus: observed_generation=1:int64 state=2:MachineState image_ref=3:string volumes=4:VolumeStatus* "
    "network_interfaces=5:NetworkInterfaceStatus* machine_conditions=6:MachineCondition*",
    "MachineCondition: type=1:string status=2:string reason=3:string message=4:string last_transition_time=5:int64",
    "Volume: name=1:string device=2:string local_disk=4:LocalDisk connection=5:VolumeConnection",
    "LocalDisk: size_bytes=1:int64 image=2:ImageSpec",
    "ImageSpec: image=1:string",
    "VolumeConnection: driver=1:string handle=2:string attributes=3:string>string* secret_data=4:string>bytes* "
    "encryption_data=5:string>bytes* effective_storage_bytes=6:int64",
    "VolumeSpec: driver=1:string handle=2:string attributes=3:string>string* secret_data=4:string>bytes*",
    "NetworkInterface: name=1:string network_id=2:string ips=3:string* attributes=4:string>string*",
    "VolumeStatus: name=1:string handle=2:string state=3:VolumeState",
    "NetworkInterfaceStatus: name=1:string handle=2:string state=3:NetworkInterfaceState",
    "MachineClass: name=1:string capabilities=2:MachineClassCapabilities",
    "MachineClassCapabilities: resources=1:string>int64*",
    "MachineClassStatus: machine_class=1:MachineClass quantity=2:int64",
    "MachineFilter: id=1:string label_selector=2:string>string*",
    "EventFilter: id=1:string label_selector=2:string>string* events_from_time=3:int64 events_to_time=4:int64",
    "VersionRequest: version=1:string",
    "VersionResponse: runtime_name=1:string runtime_version=2:string layer=10:string",
    "ListEventsRequest: filter=1:EventFilter",
    "ListEventsResponse: events=1:Event*",
    "ListMachinesRequest: filter=1:MachineFilter",
    "ListMachinesResponse: machines=1:Machine*",
    "CreateMachineRequest: machine=1:Machine",
    "CreateMachineResponse: machine=1:Machine",
    "DeleteMachineRequest: machine_id=1:string",
    "DeleteMachineResponse:",
    "UpdateMachineAnnotationsRequest: machine_id=1:string annotations=2:string>string*",
    "UpdateMachineAnnotationsResponse:",
    "UpdateMachinePowerRequest: machine_id=1:string power=2:Power",
    "UpdateMachinePowerResponse:",
    "AttachVolumeRequest: machine_id=1:string volume=2:Volume",
    "AttachVolumeResponse:",
    "DetachVolumeRequest: machine_id=1:string name=2:string",
    "DetachVolumeResponse:",
    "UpdateVolumeRequest: machine_id=1:string volume=2:Volume",
    "UpdateVolumeResponse:",
    "AttachNetworkInterfaceRequest: machine_id=1:string network_interface=2:NetworkInterface",
    "AttachNetworkInterfaceResponse:",
    "DetachNetworkInterfaceRequest: machine_id=1:string name=2:string",
    "DetachNetworkInterfaceResponse:",
    "StatusRequest:",
    "StatusResponse: machine_class_status=1:MachineClassStatus*",
    "ExecRequest: machine_id=1:string",
    "ExecResponse: url=1:string",
    "Reservation: metadata=1:ObjectMetadata spec=2:ReservationSpec status=3:ReservationStatus",
    "Toleration: key=1:string operator=2:string value=3:string effect=4:string",
    "ReservationSpec: resources=1:string>bytes* lineage=10:string attempt=11:uint64 class=12:string "
    "selector=13:string>string* tolerations=14:Toleration* priority=15:int32 group=16:string ttl_seconds=17:int64 "
    "pools=18:string*",
    "ReservationStatus: state=1:ReservationState reason=10:string score=11:int32 lease_seconds=12:int64 "
    "provider_epoch=13:string sequence=14:uint64 committed=15:bool",
    "ReservationFilter: id=1:string label_selector=2:string>string*",
    "Quantity: string=1:string",
    "ListReservationsRequest: filter=1:ReservationFilter",
    "ListReservationsResponse: reservations=1:Reservation*",
    "CreateReservationRequest: reservation=1:Reservation",
    "CreateReservationResponse: reservation=1:Reservation",
    "DeleteReservationRequest: reservation_id=1:string",
    "DeleteReservationResponse:",
    "RenewReservationRequest: reservation_id=1:string",
    "RenewReservationResponse: reservation=1:Reservation",
    "ConfirmReservationRequest: reservation_id=1:string attempt=2:uint64",
    "ConfirmReservationResponse: reservation=1:Reservation",
    "WatchReservationsRequest:",
    "WatchReservationsResponse: reservation=1:Reservation gone=2:string machine=3:Machine",
    "Power: POWER_ON=0 POWER_OFF=1",
    "VolumeState: VOLUME_PENDING=0 VOLUME_ATTACHED=1",
    "NetworkInterfaceState: NETWORK_INTERFACE_PENDING=0 NETWORK_INTERFACE_ATTACHED=1",
    "MachineState: MACHINE_PENDING=0 MACHINE_RUNNING=1 MACHINE_SUSPENDED=2 MACHINE_TERMINATED=3 "
    "MACHINE_TERMINATING=4 MACHINE_STOPPED=5",
    "ReservationState: RESERVATION_STATE_PENDING=0 RESERVATION_STATE_ACCEPTED=1 RESERVATION_STATE_REJECTED=2 "
    "RESERVATION_STATE_BOUND=3 RESERVATION_STATE_LOST=4",
};

TEST(FleetWire, EveryMessageAndNumber) {
    const auto& machine = *iri::Machine::descriptor()->file();
    const auto& event = *machine.FindMessageTypeByName("ListEventsResponse")->field(0)->message_type()->file();
    const auto& meta = *iri::Machine::descriptor()->field(0)->message_type()->file();
    std::vector<std::string> lines;
    for (const auto* file : {&meta, &event, &machine}) {
        for (auto& line : lines_of(*file)) lines.push_back(std::move(line));
    }
    std::vector<std::string> wanted(std::begin(kTable), std::end(kTable));
    std::sort(lines.begin(), lines.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(lines, wanted);
}

TEST(FleetWire, EveryCall) {
    const auto& service = *iri::Machine::descriptor()->file()->service(0);
    EXPECT_EQ(service.full_name(), "machine.v1alpha1.MachineRuntime");
    std::string names;
    for (int i = 0; i < service.method_count(); ++i) {
        const auto& call = *service.method(i);
        EXPECT_EQ(call.input_type()->name(), call.name() + "Request");
        EXPECT_EQ(call.output_type()->name(), call.name() + "Response");
        names += call.name() + (call.server_streaming() ? "* " : " ");
    }
    EXPECT_EQ(names,
              "Version ListEvents ListMachines CreateMachine DeleteMachine UpdateMachineAnnotations UpdateMachinePower "
              "AttachVolume DetachVolume UpdateVolume AttachNetworkInterface DetachNetworkInterface Status Exec "
              "ListReservations CreateReservation DeleteReservation RenewReservation ConfirmReservation "
              "WatchReservations* ");
}

// A provider of 4 cpu and 4 nics behind a socket, with a thread that turns it.
class FleetSocket : public testing::Test {
protected:
    FleetSocket() {
        std::string folder = "/tmp/berth-wire-XXXXXX";
        CHECK(mkdtemp(folder.data()) != nullptr);
        folder_ = folder;
        run::ProviderOptions options;
        options.capacity = {{"cpu", Quantity::from_value(4)}, {"nics", Quantity::from_value(4)}};
        options.epoch = "1";
        provider_ = std::make_unique<run::FleetProvider>(std::move(options), nullptr, [this] { wake_.notify(); });
        thread_ = std::thread([this] {
            while (!over_) {
                provider_->turn(run::moment(base::system_clock()));
                wake_.wait(milliseconds(100));
            }
        });
        auto server = link::IriServer::start(address(), {}, *provider_);
        CHECK(server.ok());
        server_ = std::move(*server);
        stub_ = iri::MachineRuntime::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    }
    ~FleetSocket() override {
        server_.reset();
        over_ = true;
        wake_.notify();
        thread_.join();
        std::filesystem::remove_all(folder_);
    }
    std::string address() const { return "unix://" + folder_ + "/s.sock"; }

    static iri::CreateReservationRequest ask(const std::string& lineage, const std::string& cpu) {
        iri::CreateReservationRequest out;
        iri::Quantity amount;
        amount.set_string(cpu);
        auto& spec = *out.mutable_reservation()->mutable_spec();
        (*spec.mutable_resources())["cpu"] = amount.SerializeAsString();
        spec.set_lineage(lineage);
        return out;
    }
    grpc::Status reserve(const iri::CreateReservationRequest& request, iri::CreateReservationResponse* out = nullptr) {
        grpc::ClientContext context;
        iri::CreateReservationResponse response;
        return stub_->CreateReservation(&context, request, out == nullptr ? &response : out);
    }

    std::string folder_;
    link::WakeEvent wake_;
    std::atomic<bool> over_ = false;
    std::unique_ptr<run::FleetProvider> provider_;
    std::unique_ptr<link::IriServer> server_;
    std::unique_ptr<iri::MachineRuntime::Stub> stub_;
    std::thread thread_;
};

TEST_F(FleetSocket, AmountsThatAreNoneAreRefusedWithASentence) {
    for (const auto& [amount, words] : std::vector<std::pair<std::string, std::string>>{
             {"-1", "\"-1\" is no amount above 0"}, {"0", "is no amount above 0"}, {"many", "\"many\" is no amount"}}) {
        const auto status = reserve(ask("m", amount));
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << amount;
        EXPECT_NE(status.error_message().find(words), std::string::npos) << status.error_message();
    }
    auto garbage = ask("m", "1");
    (*garbage.mutable_reservation()->mutable_spec()->mutable_resources())["memory"] = "\xff\xff\xff";
    EXPECT_EQ(reserve(garbage).error_message(), "resource \"memory\" is no serialised Quantity");
    iri::CreateReservationRequest nothing;
    nothing.mutable_reservation()->mutable_spec()->set_lineage("m");
    EXPECT_EQ(reserve(nothing).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    auto many = ask("m", "1");
    for (int i = 0; i < 200; ++i) {
        auto& all = *many.mutable_reservation()->mutable_spec()->mutable_resources();
        all[fmt::format("r{}", i)] = all["cpu"];
    }
    EXPECT_EQ(reserve(many).error_message(), "a reservation names 201 resources, at most 128 may be");
}

TEST_F(FleetSocket, HugeAmountsFitNowhereAndHarmNobody) {
    for (const char* amount : {"9223372036854775807", "9223372036854775807Ei", "1e300", "8Ei"}) {
        iri::CreateReservationResponse out;
        const auto status = reserve(ask(fmt::format("m{}", amount), amount), &out);
        EXPECT_TRUE(!status.ok() || out.reservation().status().reason() == "Unsatisfiable") << amount;
    }
    iri::CreateReservationResponse out;
    ASSERT_TRUE(reserve(ask("small", "4"), &out).ok());
    EXPECT_EQ(out.reservation().status().state(), iri::RESERVATION_STATE_ACCEPTED);
    // Room that comes wakes those who wait; huge ones among them are passed over.
    grpc::ClientContext context;
    iri::DeleteReservationRequest gone;
    gone.set_reservation_id(out.reservation().metadata().id());
    iri::DeleteReservationResponse done;
    EXPECT_TRUE(stub_->DeleteReservation(&context, gone, &done).ok());
}

TEST_F(FleetSocket, UnknownFieldsArePassedOver) {
    auto request = ask("m", "1");
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(4711, "from the future");
    EXPECT_TRUE(reserve(request).ok());
}

TEST_F(FleetSocket, WhoSendsNoLineageHearsOfThreeStates) {
    iri::CreateReservationResponse out;
    auto request = ask("", "1");
    (*request.mutable_reservation()
          ->mutable_metadata()
          ->mutable_labels())["machinepoollet.ironcore.dev/reservation-uid"] = "u";
    ASSERT_TRUE(reserve(request, &out).ok());
    EXPECT_LE(out.reservation().status().state(), iri::RESERVATION_STATE_REJECTED);
}

TEST_F(FleetSocket, AMessageThatIsTooLargeIsRefused) {
    auto request = ask("m", "1");
    request.mutable_reservation()->mutable_spec()->set_group(std::string(5 << 20, 'x'));
    EXPECT_EQ(reserve(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(reserve(ask("m", "1")).ok());
}

TEST_F(FleetSocket, WhatIsNotKnownIsNotFound) {
    grpc::ClientContext context;
    iri::DeleteMachineRequest request;
    request.set_machine_id("nobody");
    iri::DeleteMachineResponse response;
    EXPECT_EQ(stub_->DeleteMachine(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
    grpc::ClientContext other;
    iri::RenewReservationRequest renew;
    renew.set_reservation_id("nobody.1");
    iri::RenewReservationResponse renewed;
    EXPECT_EQ(stub_->RenewReservation(&other, renew, &renewed).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(FleetSocket, AnInterfaceThatIsAttachedNeedsRoom) {
    iri::CreateMachineRequest request;
    auto& machine = *request.mutable_machine();
    (*machine.mutable_metadata()->mutable_labels())["berth.dev/lineage"] = "m";
    (*machine.mutable_metadata()->mutable_annotations())["berth.dev/resources"] = R"({"cpu":"1","nics":"3"})";
    for (int i = 0; i < 3; ++i) machine.mutable_spec()->add_network_interfaces()->set_name(fmt::format("n{}", i));
    grpc::ClientContext context;
    iri::CreateMachineResponse made;
    ASSERT_TRUE(stub_->CreateMachine(&context, request, &made).ok());
    const auto attach = [&](const std::string& name) {
        grpc::ClientContext fresh;
        iri::AttachNetworkInterfaceRequest more;
        more.set_machine_id("m");
        more.mutable_network_interface()->set_name(name);
        iri::AttachNetworkInterfaceResponse out;
        return stub_->AttachNetworkInterface(&fresh, more, &out);
    };
    EXPECT_TRUE(attach("n3").ok());
    const auto refused = attach("n4");
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.error_message(), "machine m: Insufficient room");
}

// A provider that lies, or hangs, or has no reservations at all.
class Liar final : public iri::MachineRuntime::Service {
public:
    std::shared_future<void> go_on;

private:
    grpc::Status CreateReservation(grpc::ServerContext*, const iri::CreateReservationRequest* request,
                                   iri::CreateReservationResponse* response) override {
        const auto& lineage = request->reservation().spec().lineage();
        if (lineage == "hang") go_on.wait();
        if (lineage == "none") return {grpc::StatusCode::UNIMPLEMENTED, "no such call"};
        auto& out = *response->mutable_reservation();
        out.mutable_metadata()->set_id("somebody-else.1");
        out.mutable_spec()->set_lineage("somebody-else");
        out.mutable_status()->set_state(iri::RESERVATION_STATE_ACCEPTED);
        return grpc::Status::OK;
    }
};

TEST(FleetLiar, IsNotBelieved) {
    std::promise<void> over;
    Liar liar;
    liar.go_on = over.get_future().share();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&liar);
    const auto server = builder.BuildAndStart();
    const auto client = link::connect_iri(fmt::format("127.0.0.1:{}", port), {}, milliseconds(500));
    ASSERT_TRUE(client);
    const auto ask = [&](const std::string& lineage) {
        std::promise<Result<model::IriReservation>> answer;
        model::IriReservation wanted;
        wanted.ask.lineage = lineage;
        wanted.ask.resources = {{"cpu", Quantity::from_value(1)}};
        (*client)->create_reservation(wanted,
                                      [&](Result<model::IriReservation> said) { answer.set_value(std::move(said)); });
        return answer.get_future().get();
    };
    const auto lied = ask("m");
    ASSERT_FALSE(lied);
    EXPECT_EQ(lied.error().message, "the runtime answered for \"somebody-else\", asked for \"m\"");
    const auto hung = ask("hang");
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().reason, base::Reason::Timeout);
    const auto none = ask("none");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().reason, base::Reason::MethodNotAllowed);
    over.set_value();
}

}  // namespace
}  // namespace berth::fleet_test
