/* SPDX-FileCopyrightText: 2026 the pcbatch authors */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers_cpp.cpp - what a C++ program would use instead of pcbatch: std::atomic, oneTBB's
 * thread-local containers, RocksDB's statistics.
 *
 * PEERS_HAVE_TBB, PEERS_HAVE_ROCKSDB: 1 when the package is there (see peers.mk).
 */
#include "peers_pcbatch.h"

#include <atomic>
#include <memory>

/* ---- std::atomic: one shared counter, one limit ---- */

namespace {
struct alignas(64) StdCounter {
	std::atomic<int64_t> v{0};
};
StdCounter std_counter[PEER_COUNTERS];
StdCounter std_usage;
} // namespace

static inline void std_atomic_add(unsigned int k)
{
	std_counter[k].v.fetch_add(1, std::memory_order_relaxed);
}

static int64_t std_atomic_total()
{
	int64_t sum = 0;

	for (const StdCounter &c : std_counter)
		sum += c.v.load(std::memory_order_relaxed);
	return sum;
}

PEER_COUNTER(std_atomic, "std::atomic fetch_add, shared")

static inline bool std_atomic_limit_charge()
{
	int64_t v = std_usage.v.load(std::memory_order_relaxed);

	do {
		if (v + 1 > PEER_LIMIT)
			return false;
	} while (!std_usage.v.compare_exchange_weak(v, v + 1, std::memory_order_acquire, std::memory_order_relaxed));
	return true;
}

static inline void std_atomic_limit_uncharge()
{
	std_usage.v.fetch_sub(1, std::memory_order_release);
}

static int64_t std_atomic_limit_total()
{
	return std_usage.v.load(std::memory_order_relaxed);
}

PEER_LIMITER(std_atomic_limit, "std::atomic compare_exchange_weak loop", 1)

/* ---- oneTBB: a value a thread, combined when nobody adds ---- */

#if PEERS_HAVE_TBB
#include <tbb/combinable.h>
#include <tbb/enumerable_thread_specific.h>

using TbbCombinable = tbb::combinable<int64_t>;
using TbbEts = tbb::enumerable_thread_specific<int64_t>;
using TbbKeyEts =
	tbb::enumerable_thread_specific<int64_t, tbb::cache_aligned_allocator<int64_t>, tbb::ets_key_per_instance>;

/* Made once and never destroyed, as counters of a server are. */
static TbbCombinable *tbb_combinable_counter;
static TbbEts *tbb_ets_counter;
static TbbKeyEts *tbb_ets_key_counter;

template <class Counter> static int64_t tbb_sum(Counter *counter)
{
	int64_t sum = 0;

	for (int k = 0; k < PEER_COUNTERS; k++)
		counter[k].combine_each([&sum](int64_t v) { sum += v; });
	return sum;
}

static inline void tbb_combinable_add(unsigned int k)
{
	tbb_combinable_counter[k].local()++;
}

static int64_t tbb_combinable_total()
{
	return tbb_sum(tbb_combinable_counter);
}

PEER_COUNTER(tbb_combinable, "oneTBB combinable")

static inline void tbb_ets_add(unsigned int k)
{
	tbb_ets_counter[k].local()++;
}

static int64_t tbb_ets_total()
{
	return tbb_sum(tbb_ets_counter);
}

PEER_COUNTER(tbb_ets, "oneTBB enumerable_thread_specific")

static inline void tbb_ets_key_add(unsigned int k)
{
	tbb_ets_key_counter[k].local()++;
}

static int64_t tbb_ets_key_total()
{
	return tbb_sum(tbb_ets_key_counter);
}

PEER_COUNTER(tbb_ets_key, "oneTBB ets, ets_key_per_instance")

static void tbb_rows()
{
	tbb_combinable_counter = new TbbCombinable[PEER_COUNTERS];
	tbb_ets_counter = new TbbEts[PEER_COUNTERS];
	tbb_ets_key_counter = new TbbKeyEts[PEER_COUNTERS];
	peers_add(&tbb_combinable_peer);
	peers_add(&tbb_ets_peer);
	peers_add(&tbb_ets_key_peer);
}
#else
static void tbb_rows()
{
	peers_skip("oneTBB", "apt-get install libtbb-dev");
}
#endif

/* ---- RocksDB: tickers of a Statistics object, a row for each CPU ---- */

#if PEERS_HAVE_ROCKSDB
#include <rocksdb/statistics.h>

static std::shared_ptr<rocksdb::Statistics> *rocksdb_statistics;

static_assert(rocksdb::TICKER_ENUM_MAX >= PEER_COUNTERS, "a ticker for each counter");

static inline void rocksdb_ticker_add(unsigned int k)
{
	(*rocksdb_statistics)->recordTick(k, 1);
}

static int64_t rocksdb_ticker_total()
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < PEER_COUNTERS; k++)
		sum += (*rocksdb_statistics)->getTickerCount(k);
	return static_cast<int64_t>(sum);
}

PEER_COUNTER(rocksdb_ticker, "RocksDB Statistics::recordTick")

static void rocksdb_rows()
{
	rocksdb_statistics = new std::shared_ptr<rocksdb::Statistics>(rocksdb::CreateDBStatistics());
	peers_add(&rocksdb_ticker_peer);
}
#else
static void rocksdb_rows()
{
	peers_skip("RocksDB statistics", "apt-get install librocksdb-dev");
}
#endif

int main(int argc, char **argv)
{
	pcbatch_rseq_rows();
	pcbatch_generic_rows();
	peers_add(&std_atomic_peer);
	peers_add(&std_atomic_limit_peer);
	tbb_rows();
	rocksdb_rows();
	return peers_main(argc, argv, "peers_cpp");
}
