#pragma once

#include <string>
#include <utility>

#include "store/store.h"

// Short words for tests.
namespace berth::store {

inline Bytes bytes(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}
inline Key pod(std::string name) {
    return {"pods", "default", std::move(name)};
}
inline Txn create(Key key, std::string text) {
    std::string uid = "uid-" + key.name;
    return {{{.op = Op::Create, .key = std::move(key), .bytes = bytes(std::move(text)), .uid = std::move(uid)}}};
}
inline Txn update(Key key, std::string text) {
    return {{{.op = Op::Update, .key = std::move(key), .bytes = bytes(std::move(text))}}};
}
inline Txn remove(Key key) {
    return {{{.op = Op::Delete, .key = std::move(key)}}};
}
inline std::unique_ptr<Store> open_memory(HistoryLimits history = {}) {
    return *Store::open(memory_log(), {.history = history});
}

}  // namespace berth::store
