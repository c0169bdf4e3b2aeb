#include <fmt/format.h>

#include <algorithm>

#include "model/names.h"
#include "model/selector.h"

// The grammar of "a=b,c!=d,e in (f,g),h,!i,j>5".
namespace berth::model {
namespace {

using base::bad_request;
using Op = Requirement::Op;

enum class TokenKind : uint8_t { End, Word, Symbol };

// A word, or one of = == != ! < > ( ) and ','.
struct Token {
    TokenKind kind = TokenKind::End;
    std::string_view text;

    bool is(std::string_view symbol) const { return kind == TokenKind::Symbol && text == symbol; }
};

constexpr std::string_view kSymbols = "=!(),<>";
constexpr std::string_view kBlanks = " \t\r\n";

class Lexer {
public:
    explicit Lexer(std::string_view text) : rest_(text) { step(); }

    const Token& ahead() const { return ahead_; }
    Token take() {
        const Token token = ahead_;
        step();
        return token;
    }
    // Takes the symbol when it is next.
    bool accept(std::string_view symbol) {
        if (!ahead_.is(symbol)) return false;
        step();
        return true;
    }

private:
    void step() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
        if (rest_.empty()) {
            ahead_ = {};
            return;
        }
        const bool symbol = kSymbols.find(rest_.front()) != std::string_view::npos;
        const size_t length = symbol ? (rest_.starts_with("==") || rest_.starts_with("!=") ? 2 : 1)
                                     : std::min(rest_.find_first_of("=!(),<> \t\r\n"), rest_.size());
        ahead_ = {symbol ? TokenKind::Symbol : TokenKind::Word, rest_.substr(0, length)};
        rest_.remove_prefix(length);
    }

    std::string_view rest_;
    Token ahead_;
};

class Parser {
public:
    Parser(std::string_view text, const SelectorLimits& limits) : in_(text), limits_(limits) {}

    Result<std::vector<Requirement>> parse() {
        std::vector<Requirement> requirements;
        if (in_.ahead().kind == TokenKind::End) return requirements;
        do {
            if (requirements.size() >= limits_.requirements)
                return bad_request(fmt::format("selector: at most {} requirements are accepted", limits_.requirements));
            requirements.push_back(TRY(requirement()));
        } while (in_.accept(","));
        if (in_.ahead().kind != TokenKind::End) return unexpected("',' or the end");
        return requirements;
    }

private:
    Error unexpected(std::string_view wanted) const {
        const auto& token = in_.ahead();
        const auto found =
            token.kind == TokenKind::End ? std::string("the end") : fmt::format("'{}'", token.text.substr(0, 128));
        return bad_request(fmt::format("selector: found {}, expected {}", found, wanted));
    }

    Result<Requirement> requirement() {
        const bool absent = in_.accept("!");
        if (in_.ahead().kind != TokenKind::Word) return unexpected("a label key");
        const std::string key(in_.take().text);
        if (absent) return make_requirement(key, Op::DoesNotExist, {});
        if (in_.ahead().kind == TokenKind::End || in_.ahead().is(",")) return make_requirement(key, Op::Exists, {});
        const Op op = TRY(comparison());
        const bool set = op == Op::In || op == Op::NotIn;
        return make_requirement(key, op, set ? TRY(values()) : TRY(value()));
    }

    Result<Op> comparison() {
        static constexpr std::pair<std::string_view, Op> kOps[] = {
            {"=", Op::Equals},    {"==", Op::DoubleEquals}, {"!=", Op::NotEquals}, {"in", Op::In},
            {"notin", Op::NotIn}, {">", Op::Greater},       {"<", Op::Less}};
        const auto found = std::find_if(std::begin(kOps), std::end(kOps),
                                        [&](const auto& op) { return op.first == in_.ahead().text; });
        if (found == std::end(kOps)) return unexpected("one of = == != in notin > <");
        in_.take();
        return found->second;
    }

    // Nothing after the operator stands for the empty value.
    Result<std::vector<std::string>> value() {
        std::vector<std::string> one(1);
        if (in_.ahead().kind == TokenKind::End || in_.ahead().is(",")) return one;
        if (in_.ahead().kind != TokenKind::Word) return unexpected("a value");
        one[0] = in_.take().text;
        return one;
    }

    // (a,b): a place left free between commas or parentheses stands for the empty value.
    Result<std::vector<std::string>> values() {
        if (!in_.accept("(")) return unexpected("'('");
        std::vector<std::string> list;
        do {
            if (list.size() >= limits_.values)
                return bad_request(fmt::format("selector: at most {} values are accepted", limits_.values));
            const bool word = in_.ahead().kind == TokenKind::Word;
            list.emplace_back(word ? in_.take().text : std::string_view());
        } while (in_.accept(","));
        if (!in_.accept(")")) return unexpected("',' or ')'");
        return list;
    }

    Lexer in_;
    SelectorLimits limits_;
};

}  // namespace

Result<Selector> Selector::parse(std::string_view text, const SelectorLimits& limits) {
    return Selector(TRY(Parser(text, limits).parse()));
}

}  // namespace berth::model
