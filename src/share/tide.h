#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "share/rounding.h"
#include "share/watch.h"

namespace berth::share {

// The levels of the columns that are full, and all who stand by them, kept while demands change.
//
// A leaf is stopped by the first of its columns that is full, at the level of that column; so what it has is a straight
// line in that one level, as long as it stays between the next bends of its way. The sum of a column is a sum of such
// lines, one for each column that stops. A change exchanges the lines of one leaf; then the levels are found again, the
// lowest first, since who is stopped at a level has no part in those above; and those whose bends they have passed, a
// handful, get another line.
//
// Whole pods: a part of a pod is a line in the same level. Parts are served by rank, and ranks change with every level,
// so they are kept by zones. All of the early ones are served (that what they need is there in the end proves it),
// those in the middle are sorted and served one by one, and of the late ones only those that need no more than is left
// then are looked at at all.
class Tide {
public:
    // Of a tree that is solved; none if it is not of the kind whose changes can be followed: one level of consumers
    // with one leaf each, guarantees that fit, and no leaf whose pods depend on what rule 3 gives it.
    static std::unique_ptr<Tide> of(Tree& tree, const Whole& whole);

    // A leaf of the tree asks for something else. False: all rules are due anew.
    bool change(NodeId id);
    // The levels for what is asked for now. False: all rules are due anew.
    bool settle();
    // What a consumer's node deserves.
    void tell(NodeId id, Share& share);
    // Everybody, as the rules leave it; but what rule 3 gives is due.
    void lay(Whole& whole);

private:
    enum class Zone : uint8_t { None, Early, Middle, Late };
    // A straight line in the level of `by`, or a point.
    struct Line {
        double at = 0, rise = 0;
    };
    struct Stand {
        uint32_t keys_begin = 0, keys_end = 0;
        uint32_t by = kNoIndex;                    // the column that stops it; kNoIndex: no level moves it
        uint32_t watch[2] = {kNoIndex, kNoIndex};  // columns whose levels keep it so
        uint32_t slot[2] = {0, 0};
        uint32_t run = 0;        // of its part
        int64_t pods = 0;        // whole ones
        Line tau;                // how far on its way
        Line part;               // of the next pod, what it has
        Zone zone = Zone::None;  // of the part; None: it has none
        bool present = false;
        bool given = false;   // the part, unless it is early
        bool listed = false;  // among the middle ones
        uint8_t digits = 0;   // among the late ones: of what it needs of `column`
        uint32_t column = 0, place = 0;
    };
    struct Late {
        int64_t need = 0;
        NodeId node = 0;
    };
    struct Slope {
        Sum sum;
        uint32_t growers = 0;
    };
    // Where a leaf is on its way, and between which levels of which columns that is so.
    struct Course {
        uint32_t by = kNoIndex;
        Line tau;
        Watch::Bounds bounds;  // of the level of `by`
        absl::InlinedVector<std::pair<uint32_t, Watch::Bounds>, 2> others;
    };
    struct Parts {
        absl::InlinedVector<int64_t, 4> taken, needs;
        uint64_t rank = 0;
        bool operator==(const Parts&) const = default;
    };
    struct Way;
    struct Pods;
    struct Cover;
    static constexpr size_t kDigits = 65;  // of an amount, in twos

    Tide(Tree& tree, const Whole& whole);

    // --- levels
    bool is_full(uint32_t column) const { return level_[column] < kInfinity; }
    bool stand(NodeId id);
    Course course_of(const Node& leaf) const;
    void live(const Way& way, uint32_t first_key, Course& course) const;
    bool waits_for_rest(const Node& leaf, const Course& course) const;
    void set_lines(NodeId id, const Course& course);
    void watch(NodeId id, const Course& course);
    // Its own, or where in the order the column belongs.
    enum class Found { Level, Earlier, Later, None };
    Found find_level(size_t place);
    static double within(double low, double level, double high);
    bool swap(size_t place);
    double risen(uint32_t column) const;

    // --- whole pods
    bool count_pods(NodeId id, Course& course);
    bool count_run(const Node& leaf, uint32_t number, const Course& course, Pods& pods) const;
    void find_part(const Cover& cover, int64_t whole, Pods& pods) const;
    void set_part(NodeId id, const Pods& pods);
    void leave_zone(NodeId id);
    void enter_zone(NodeId id, Zone zone);
    uint64_t rank_of(NodeId id) const;
    Parts parts_of(NodeId id) const;
    bool is_given(NodeId id);
    bool serve_early();
    void serve_middle();
    void serve_late();
    void serve_parts(const std::vector<Part>& parts);
    bool fits(NodeId id) const;
    void take(NodeId id);
    void divide(const std::vector<Part>& parts);
    void divide_again();

    Tree& tree_;
    size_t m_;
    std::vector<uint32_t> order_;                 // full columns, the lowest level first
    std::vector<double> level_;                   // by column; kInfinity: it is not full
    std::vector<Stand> stands_;                   // by node
    std::vector<Line> lines_;                     // by key: its share
    std::vector<int64_t> taken_, least_, needs_;  // by key: of whole pods, of the guarantee, of the part
    std::vector<uint32_t> column_;                // by key
    std::vector<Sum> guaranteed_;                 // by column
    std::vector<Sum> points_;                     // by column: what its lines have at a level of 0
    std::vector<Slope> slopes_;                   // by column and the column that stops
    std::vector<Watch> watches_;                  // by column
    std::vector<int64_t> most_, whole_, early_;   // by column: of the cluster, of whole pods, of early parts
    std::vector<int64_t> slack_;                  // by column, while parts are served
    uint64_t first_late_ = 0, first_middle_ = 0;  // upper halves of ranks
    std::vector<Part> middle_;                    // in about their order
    std::vector<std::vector<Late>> late_;         // by column and digits
    std::vector<NodeId> given_;                   // who is not early
    std::vector<NodeId> passed_;                  // whose bends a level has passed
    std::vector<Part> few_;                       // late ones that may fit
    bool served_ = false, late_served_ = false;   // who of the middle, and behind it, is given its part is known
    bool same_ = false;                           // and nobody's part has changed since
    std::vector<double> served_at_;               // levels
};

}  // namespace berth::share
