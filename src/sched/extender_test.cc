#include "sched/extender.h"

#include "sched/live_test.h"

namespace berth::sched {
namespace {

SchedulerOptions with(std::vector<Extender> extenders) {
    SchedulerOptions options;
    options.holds_rooms = false;
    options.extenders = std::move(extenders);
    return options;
}

Extender filtering(const std::string& url) {
    Extender extender;
    extender.url = url;
    extender.filter_verb = "filter";
    return extender;
}

class ExtendersTest : public LiveTest {
protected:
    ExtendersTest() : ExtendersTest({filtering("http://one"), both()}) {}
    explicit ExtendersTest(std::vector<Extender> extenders) : LiveTest(with(std::move(extenders))) {
        node("n1", 4000);
        node("n2", 4000);
        node("n3", 4000);
        bound("there", 1000, 0, "n1");
    }
    static Extender both() {
        Extender extender = filtering("http://two");
        extender.prioritize_verb = "prioritize";
        extender.weight = 5;
        return extender;
    }
    // The one question that told() showed is answered; what follows is planned.
    void reply(const Result<std::string>& body, size_t which = 0) {
        const auto question = std::get<AskExtender>(answered_.at(which));
        for (auto& plan : scheduler_.answered(question, body, now_)) plans_.push_back(std::move(plan));
    }
};

TEST_F(ExtendersTest, EachNarrowsWhatTheOneBeforeLeftThenTheyPrioritize) {
    pending("p", 1000, 0);
    step();
    EXPECT_EQ(told(), Lines{"filter p by 0: n1 n2 n3"});
    reply(std::string(R"({"NodeNames":["n1","n2","elsewhere"],"FailedNodes":{"n3":"too loud"}})"));
    EXPECT_EQ(told(), Lines{"filter p by 1: n1 n2"});
    reply(std::string(R"({"nodes":{"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}})"));
    EXPECT_EQ(told(), Lines{"prioritize p by 1: n1 n2"});
    // 10 x 5 x 10 points outweigh that n1 is fuller.
    reply(std::string(R"([{"Host":"n1","Score":10},{"host":"n2","score":0}])"));
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(ExtendersTest, TheClusterMayChangeMeanwhile) {
    pending("p", 4000, 0);
    step();
    EXPECT_EQ(told(), Lines{"filter p by 0: n2 n3"});
    bound("quick", 4000, 0, "n2");
    reply(std::string(R"({"NodeNames":["n2"]})"));
    told();
    reply(std::string(R"({"NodeNames":["n2"]})"));
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].substr(0, 8), "refuse p") << "n2 is full by now, n3 was not passed";
    EXPECT_NE(lines[0].find("1 node(s) were not passed by an extender"), std::string::npos) << lines[0];
}

TEST_F(ExtendersTest, RefusalsAreToldInTheExtendersWords) {
    pending("p", 1000, 0);
    step();
    told();
    reply(std::string(R"({"NodeNames":[],"FailedNodes":{"n1":"too loud","n2":"too loud"},)"
                      R"("FailedAndUnresolvableNodes":{"n3":"never"}})"));
    EXPECT_EQ(told(), Lines{"refuse p: 0/3 nodes are available: 1 never, 2 too loud. no new claims to deallocate, "
                            "preemption: 0/3 nodes are "
                            "available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for "
                            "incoming pod."});
}

TEST_F(ExtendersTest, WithoutAnAnswerThePodWaitsUnlessTheExtenderMayBeIgnored) {
    pending("p", 1000, 0);
    step();
    told();
    reply(base::internal("no answer within 5s"));
    EXPECT_EQ(told(), Lines{"refuse p: extender http://one: no answer within 5s"});
    done();
    later(std::chrono::seconds(1));
    step();
    EXPECT_EQ(told(), Lines{"filter p by 0: n1 n2 n3"});
    reply(std::string("{not json"));
    EXPECT_EQ(told().at(0).substr(0, 53), "refuse p: extender http://one: the reply is no JSON: ");
}

TEST_F(ExtendersTest, ALateAnswerIsAboutNobody) {
    pending("p", 1000, 0);
    step();
    told();
    const auto question = std::get<AskExtender>(answered_[0]);
    gone("p");
    EXPECT_TRUE(scheduler_.answered(question, std::string(R"({"NodeNames":["n1"]})"), now_).empty());
    pending("p", 1000, 0);
    step();
    told();
    EXPECT_TRUE(scheduler_.answered(question, std::string(R"({"NodeNames":["n1"]})"), now_).empty());
}

TEST_F(ExtendersTest, BadScoresAreNotUsed) {
    EXPECT_FALSE(read_prioritize_reply(R"([{"Host":"n1","Score":11}])"));
    EXPECT_FALSE(read_prioritize_reply(R"([{"Host":"n1","Score":-1}])"));
    EXPECT_FALSE(read_prioritize_reply(R"([{"Host":"n1"}])"));
    EXPECT_FALSE(read_prioritize_reply(R"({})"));
    EXPECT_FALSE(read_filter_reply(R"({"Error":"I am tired"})"));
    EXPECT_FALSE(read_bind_reply(R"({"Error":"no"})"));
    EXPECT_TRUE(read_bind_reply(R"({})"));
    EXPECT_FALSE(read_filter_reply(std::string(200, '[')));
}

class ManagedTest : public ExtendersTest {
protected:
    ManagedTest() : ExtendersTest(extenders()) {}
    static std::vector<Extender> extenders() {
        Extender extender = filtering("http://gpu");
        extender.ignorable = true;
        extender.bind_verb = "bind";
        extender.preempt_verb = "preempt";
        extender.managed = {*model::intern_resource("x.io/gpu")};
        return {extender};
    }
    void gpu_pod(const std::string& name, int64_t cpu, int32_t priority) {
        model::Pod& pod = make(name, cpu, priority);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->requests.set(*model::intern_resource("x.io/gpu"), 1);
        pod.spec = spec;
        put(pod);
    }
    void gpu_node(const std::string& name) {
        auto made = std::make_shared<model::Node>();
        made->meta.name = name;
        made->allocatable = model::Resources{{model::kCpu, 4000},
                                             {model::kMemory, 1 << 30},
                                             {model::kPods, 9},
                                             {*model::intern_resource("x.io/gpu"), 4}};
        scheduler_.put(made, now_);
    }
};

TEST_F(ManagedTest, OnlyPodsThatAskForItsResourcesAreItsBusiness) {
    pending("plain", 1000, 0);
    step();
    EXPECT_EQ(told(), Lines{"bind plain to n2"});
    EXPECT_FALSE(std::get<BindPod>(answered_[0]).extender);
    gpu_node("g");
    gpu_pod("p", 1000, 0);
    step();
    EXPECT_EQ(told(), Lines{"filter p by 0: g"});
    reply(base::internal("it is away"));
    EXPECT_EQ(told(), Lines{"bind p to g"}) << "it may be ignored";
    EXPECT_EQ(std::get<BindPod>(answered_[0]).extender, 0u) << "and binds";
}

TEST_F(ManagedTest, AnExtenderMaySpareVictims) {
    gpu_node("g");
    bound("a", 2000, 1, "g");
    bound("b", 2000, 1, "g");
    gpu_pod("p", 4000, 10);
    step();
    EXPECT_EQ(told(), (Lines{"refuse p: 0/4 nodes are available: 2 Insufficient cpu, 3 Insufficient x.io/gpu.",
                             "preempt p by 0: g without b a"}));
    reply(std::string(R"({"NodeNameToMetaVictims":{"g":{"Pods":[{"UID":"b"},{"UID":"stranger"}]}}})"), 1);
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].substr(0, 13), "refuse p -> g");
    done();
    EXPECT_EQ(told(), Lines{"mark b for p"}) << "when it is stored for whom";
}

TEST_F(ManagedTest, OrRuleTheNodeOut) {
    gpu_node("g");
    bound("a", 4000, 1, "g");
    gpu_pod("p", 4000, 10);
    step();
    EXPECT_EQ(told().size(), 2u);
    reply(std::string(R"({"NodeNameToMetaVictims":{}})"), 1);
    EXPECT_EQ(told(), Lines{});
}

}  // namespace
}  // namespace berth::sched
