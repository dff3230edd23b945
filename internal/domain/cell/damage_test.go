package cell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
	"google.golang.org/protobuf/encoding/protowire"
)

// played returns a cell with one record of every kind, and its journal.
func played(t testing.TB) *world {
	w := newWorld(t, DefaultConfig())
	w.hall()
	game := w.game("g1", 4)
	w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(1), Player: "ann"}, {ID: playerID(2), Player: "bob", Data: "blue"}}})
	w.must(&hosting.AcceptPlayer{Process: processKey("p-g1"), Game: game, Player: playerID(1), Request: 5})
	w.must(&hosting.RemovePlayer{Process: processKey("p-g1"), Game: game, Player: playerID(1)})
	w.must(&hosting.IssueToken{Fleet: testFleet, Compute: testCompute})
	w.server("p2")
	w.must(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "g2", Creator: "ann", Parameters: 3})
	w.must(&hosting.EndProcess{Process: processKey("p2"), Request: 9})
	return w
}

// TestForeignEntries: an entry that a later release may have written is an error, never mistaken for a known entry.
func TestForeignEntries(t *testing.T) {
	transaction := func(body ...byte) []byte {
		return append([]byte{batchTransaction<<3 | lengthDelimited, byte(len(body))}, body...)
	}
	for name, batch := range map[string][]byte{
		"unknown field of a batch":       {7<<3 | lengthDelimited, 0},
		"transaction without its time":   transaction(transactionEvents<<3|lengthDelimited, 0),
		"unknown field of a transaction": transaction(transactionAt<<3, 1, 7<<3|lengthDelimited, 2, byte(new(kernel.Ticked).Kind())<<3|lengthDelimited, 0),
		"event of an unknown kind":       transaction(transactionAt<<3, 1, transactionEvents<<3|lengthDelimited, 2, 9<<3|lengthDelimited, 0),
		// 257 is no Ticked, although a byte of it is.
		"event of a kind beyond a byte": transaction(transactionAt<<3, 1, transactionEvents<<3|lengthDelimited, 3, 0x8a, 0x10, 0),
		"two events in one":             transaction(transactionAt<<3, 1, transactionEvents<<3|lengthDelimited, 4, byte(new(kernel.Ticked).Kind())<<3|lengthDelimited, 0, byte(new(kernel.Ticked).Kind())<<3|lengthDelimited, 0),
		"empty event":                   transaction(transactionAt<<3, 1, transactionEvents<<3|lengthDelimited, 0),
		// 0x82, 0x02 is the tag of ProcessActivated, 65536 its port.
		"a port beyond its type": transaction(transactionAt<<3, 1, transactionEvents<<3|lengthDelimited, 7, 0x82, 0x02, 4, 2<<3, 0x80, 0x80, 4),
	} {
		if err := New(DefaultConfig()).Replay(1, batch); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzEntry fuzzes the decoding of damaged journal entries. It does not apply them: entries are checksummed, and apply trusts
// their content.
func FuzzEntry(f *testing.F) {
	for _, batch := range played(f).journal {
		f.Add(batch)
	}
	f.Fuzz(func(t *testing.T, batch []byte) {
		var again []byte
		err := EachEvent(batch, func(_ domain.Time, e kernel.Event) { again = wire.Append(again[:0], e) })
		if err != nil && !errors.Is(err, wire.ErrMalformed) && !bytes.Contains([]byte(err.Error()), []byte("later release")) {
			t.Errorf("%v is neither damage nor a later release", err)
		}
	})
}

// TestDamagedSnapshot damages every byte of a snapshot, and cuts it everywhere.
func TestDamagedSnapshot(t *testing.T) {
	var whole bytes.Buffer
	if err := played(t).cell.Freeze().Write(&whole); err != nil {
		t.Fatal(err)
	}
	for at := range whole.Len() {
		for _, change := range []byte{1, 4, 0x80, 0xff} {
			damaged := bytes.Clone(whole.Bytes())
			damaged[at] ^= change
			if !promisesMany(damaged) {
				_ = New(DefaultConfig()).Load(bytes.NewReader(damaged)) // must not panic
			}
		}
		if err := New(DefaultConfig()).Load(bytes.NewReader(whole.Bytes()[:at])); err == nil {
			t.Errorf("cut at byte %d of %d: no error", at, whole.Len())
		}
	}
}

// FuzzSnapshot loads damaged snapshots: an error or a cell, and a cell that was loaded can be written again.
func FuzzSnapshot(f *testing.F) {
	var snapshot bytes.Buffer
	if err := played(f).cell.Freeze().Write(&snapshot); err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot.Bytes())
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		if promisesMany(snapshot) {
			t.Skip("makes room for player sessions that do not come, which only costs time")
		}
		c := New(DefaultConfig())
		if err := c.Load(bytes.NewReader(snapshot)); err != nil {
			return
		}
		if err := c.Freeze().Write(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}

// promisesMany reports whether some head of the snapshot announces more than a few player sessions.
func promisesMany(snapshot []byte) bool {
	for rest := snapshot; len(rest) > 0; {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return false
		}
		kind, body, _, err := nextField(rest[n : n+int(length)])
		var head kernel.Head
		if err == nil && kind == partHead && wire.Unmarshal(body, &head) == nil && head.Players > 1000 {
			return true
		}
		rest = rest[n+int(length):]
	}
	return false
}

// FuzzArchived reads damaged records of the archive.
func FuzzArchived(f *testing.F) {
	w := played(f)
	v := w.cell.View()
	for _, x := range v.Ended(0, 10, w.now) {
		f.Add(x.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := hosting.DecodeGameSession(data)
		_, err2 := hosting.DecodePlayerSession(data)
		for _, err := range []error{err, err2} {
			if err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Error(err)
			}
		}
	})
}

// Field numbers of proto/journal.proto, and the wire type of length-delimited fields.
const (
	batchTransaction  = 1
	transactionAt     = 1
	transactionEvents = 2
	lengthDelimited   = 2
)

const partHead = 1 // of a snapshot

// nextField splits one length-delimited field off b.
func nextField(b []byte) (num uint64, body, rest []byte, err error) {
	n, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 || kind != protowire.BytesType {
		return 0, nil, nil, wire.ErrMalformed
	}
	body, length := protowire.ConsumeBytes(b[tag:])
	if length < 0 {
		return 0, nil, nil, wire.ErrMalformed
	}
	return uint64(n), body, b[tag+length:], nil
}
