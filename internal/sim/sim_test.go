package sim

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"strconv"
	"testing"
)

// failedOnce are seeds that once found something, be it in the simulator itself.
var failedOnce = []uint64{2611020232, 2324282457, 3367901413, 8, 554562523, 2189938680}

// TestSim runs fixed seeds, those that once failed, and a few new ones; SIM_SEEDS=n runs n new ones. SIM_SEED=x runs only x.
func TestSim(t *testing.T) {
	if one := os.Getenv("SIM_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		run(t, seed)
		return
	}
	fresh := 4
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil {
		fresh = n
	}
	for seed := range uint64(12) {
		run(t, seed)
	}
	for _, seed := range failedOnce {
		run(t, seed)
	}
	for range fresh {
		var b [8]byte
		_, _ = rand.Read(b[:])
		run(t, binary.LittleEndian.Uint64(b[:])>>32)
	}
}

func run(t *testing.T, seed uint64) {
	t.Helper()
	w := New(seed)
	if err := w.Run(4000); err != nil {
		t.Errorf("%v\nagain: SIM_SEED=%d go test ./internal/sim -run TestSim", err, seed)
	}
	if testing.Verbose() {
		t.Logf("seed %d: %+v, %d entries", seed, w.Counts(), len(w.history.entries))
	}
}

// TestSameSeedSameRun: a seed that finds something finds it again.
func TestSameSeedSameRun(t *testing.T) {
	var worlds [2]*World
	for i := range worlds {
		worlds[i] = New(7)
		if err := worlds[i].Run(1500); err != nil {
			t.Fatal(err)
		}
	}
	a, b := worlds[0], worlds[1]
	if a.counts != b.counts || len(a.history.entries) != len(b.history.entries) || !a.now.Equal(b.now) {
		t.Errorf("the same seed gave %+v and %+v", a.counts, b.counts)
	}
	for i := range a.history.entries {
		if string(a.history.entries[i]) != string(b.history.entries[i]) {
			t.Fatalf("entry %d differs", i+1)
		}
	}
}
