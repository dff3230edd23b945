package snapshot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

var installation = uuid.UUID{1, 2, 3}

func write(t testing.TB, at uint64, payload []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, at, installation)
	for rest := payload; len(rest) > 0; { // in uneven pieces, as encoders write
		n := min(len(rest), 1+len(payload)/3)
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(stored []byte, at uint64) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(stored), at)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func payload(n int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(random.Uint32())
	}
	return p
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, n := range []int{0, 1, BlockBytes - 1, BlockBytes, BlockBytes + 1, 3*BlockBytes + 17} {
		want := payload(n)
		got, err := read(write(t, 7, want), 7)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("payload of %d bytes: got %d bytes and %v", n, len(got), err)
		}
	}
}

func TestASnapshotSaysWhereItBelongs(t *testing.T) {
	r, err := NewReader(bytes.NewReader(write(t, 7, nil)), 7)
	if err != nil || r.Installation() != installation {
		t.Errorf("installation %s, %v, want %s", r.Installation(), err, installation)
	}
	// A snapshot of a release that knew no installations, byte for byte.
	old, err := hex.DecodeString("4d555354534e503107000000000000008e501d2a02000000e56dc6e1686900000000e7cd54cd0200000000000000")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(old, 7)
	if err != nil || string(got) != "hi" {
		t.Errorf("old snapshot: %q, %v", got, err)
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	stored := write(t, 7, payload(1000))
	for n := range len(stored) {
		if _, err := read(stored[:n], 7); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: got %v, want ErrDamaged", n, len(stored), err)
		}
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	stored := write(t, 7, payload(600))
	for i := range len(stored) {
		damaged := bytes.Clone(stored)
		damaged[i] ^= 1 << (i % 8)
		if _, err := read(damaged, 7); !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit flipped in byte %d: got %v, want ErrDamaged", i, err)
		}
	}
}

func TestBlocksOfAnotherPlaceAreNoticed(t *testing.T) {
	stored := write(t, 7, bytes.Repeat([]byte{1}, 2*BlockBytes))
	swapped := bytes.Clone(stored)
	frame := frameBytes + BlockBytes
	copy(swapped[headerBytes:], stored[headerBytes+frame:headerBytes+2*frame])
	if _, err := read(swapped, 7); !errors.Is(err, ErrDamaged) {
		t.Errorf("second block in the first one's place: got %v, want ErrDamaged", err)
	}
	if _, err := read(stored, 8); !errors.Is(err, ErrDamaged) {
		t.Errorf("snapshot of another entry: got %v, want ErrDamaged", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, 7, payload(100)))
	f.Add(write(f, 7, nil))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := read(stored, 7)
		if err == nil && len(got) > len(stored) {
			t.Errorf("%d bytes out of %d stored ones", len(got), len(stored))
		}
	})
}
