package pebble

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// TestStoredBytes compares the layout with that of earlier releases.
func TestStoredBytes(t *testing.T) {
	record := archive.Record{
		Kind: archive.PlayerSession, ID: "psess-1", Created: 300, Ended: 70_000,
		Fleet: "f", Group: "", Player: "ann", Data: []byte{9, 8},
	}
	at := location{block: 5, slot: 2}
	for name, test := range map[string]struct{ got, want []byte }{
		"record":      {appendRecord(nil, &record), []byte("\x02\xac\x02\xf0\xa2\x04\x07psess-1\x01f\x00\x03ann\x02\x09\x08")},
		"location":    {at.append(nil), []byte("\x00\x00\x00\x00\x00\x05\x00\x02")},
		"block key":   {appendBlockKey(nil, 5), []byte("b\x00\x00\x00\x00\x00\x05")},
		"expiry key":  {appendExpiryKey(nil, 70_000, 5), []byte("e\x00\x00\x00\x01\x11\x70\x00\x00\x00\x00\x00\x05")},
		"id key":      {appendIDKey(nil, record.Kind, "abc"), []byte("i\x02\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23")},
		"list prefix": {appendListPrefix(nil, archive.ByPlayer, record.Kind, "abc"), []byte("l\x03\x02\xba\x78\x16\xbf\x8f\x01\xcf\xea")},
	} {
		if !bytes.Equal(test.got, test.want) {
			t.Errorf("%s: got %x, want %x", name, test.got, test.want)
		}
	}
	key := appendListKey(nil, archive.ByPlayer, &record, at)
	if created, decoded, err := decodeListKey(key); err != nil || created != record.Created || decoded != at {
		t.Errorf("list key %x: got created %d at %+v and error %v", key, created, decoded, err)
	}
	decoded, rest, err := nextRecord(appendRecord(nil, &record))
	if err != nil || len(rest) != 0 || !reflect.DeepEqual(decoded.record(), record) {
		t.Errorf("record: got %+v, %d bytes left, error %v, want %+v", decoded.record(), len(rest), err, record)
	}
}

func TestADamagedBlockIsNamed(t *testing.T) {
	a, err := Open(onFaultyDisk(embeddbtest.NewDisk()))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	first, second := faultRecord(0), faultRecord(1)
	second.Ended = first.Ended // so that one block holds both
	if err := a.Put(t.Context(), []archive.Record{first, second}); err != nil {
		t.Fatal(err)
	}
	key := appendBlockKey(nil, 0)
	value, closer, err := a.db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	intact := bytes.Clone(value)
	closer.Close()

	for name, change := range map[string]func() error{
		"changed": func() error {
			damaged := bytes.Clone(intact)
			damaged[len(damaged)/2]++
			return a.db.Set(key, damaged, pebble.NoSync)
		},
		"cut":     func() error { return a.db.Set(key, intact[:3], pebble.NoSync) },
		"missing": func() error { return a.db.Delete(key, pebble.NoSync) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		_, _, getErr := a.Get(t.Context(), archive.PlayerSession, "psess-1")
		_, listErr := a.List(t.Context(), archive.PlayerSession, archive.ByPlayer, "player", archive.Cursor{}, 10)
		if removed, err := a.Expire(t.Context(), 1<<40, 10); removed != 0 || err != nil || !slices.Contains(a.Damage(), "block 0") {
			t.Errorf("expire with the block %s: %d removed, %v, damage %q", name, removed, err, a.Damage())
		}
		for doing, err := range map[string]error{"get": getErr, "list": listErr} {
			if _, ok := errors.AsType[*archive.Damaged](err); !ok {
				t.Errorf("%s with the block %s: got %v, want *archive.Damaged", doing, name, err)
			}
		}
	}
}

func FuzzOpenBlock(f *testing.F) {
	record := faultRecord(3)
	block := appendRecord(appendRecord(beginBlock(nil), &record), &record)
	sealBlock(block, 7)
	f.Add(block)
	f.Add(block[:10])
	f.Fuzz(func(t *testing.T, stored []byte) {
		_, _ = openBlock(stored, 7)
		for rest := stored; len(rest) > 0; { // also input that the checksum would have refused
			var err error
			before := len(rest)
			if _, rest, err = nextRecord(rest); err != nil {
				break
			}
			if len(rest) >= before {
				t.Fatal("a record took no bytes")
			}
		}
	})
}

func FuzzDecodeKeys(f *testing.F) {
	record := faultRecord(3)
	f.Add(appendListKey(nil, archive.ByGroup, &record, location{1, 2}))
	f.Add(appendExpiryKey(nil, 5, 6))
	f.Add(appendBlockKey(nil, 6))
	f.Fuzz(func(t *testing.T, stored []byte) {
		if block, err := decodeBlockKey(stored); err == nil && !bytes.Equal(appendBlockKey(nil, block), stored) {
			t.Errorf("block key %x was read as %d", stored, block)
		}
		if at, err := decodeLocation(stored); err == nil && !bytes.Equal(at.append(nil), stored) {
			t.Errorf("location %x was read as %+v", stored, at)
		}
		_, _ = decodeExpiryKey(stored)
		_, _, _ = decodeListKey(stored)
	})
}
