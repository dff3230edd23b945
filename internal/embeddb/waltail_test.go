package embeddb

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzFirstDamage: checkTail survives any bytes as a log, and never reports an intact log as damaged.
func FuzzFirstDamage(f *testing.F) {
	mem := vfs.NewMem()
	db, err := Open(Config{Dir: "data", FS: mem}, func(*pebble.Options) {})
	if err != nil {
		f.Fatal(err)
	}
	for n := range 4 {
		if err := db.Set([]byte{byte(n)}, bytes.Repeat([]byte{byte(n)}, 10_000), pebble.Sync); err != nil {
			f.Fatal(err)
		}
	}
	name, number, err := newestLog(mem, "data")
	if err != nil {
		f.Fatal(err)
	}
	file, err := mem.Open("data/" + name)
	if err != nil {
		f.Fatal(err)
	}
	var log bytes.Buffer
	if _, err := log.ReadFrom(file); err != nil {
		f.Fatal(err)
	}
	damage := func(log []byte) (int64, error) {
		scan := walScan{log: uint32(number)}
		follows, err := scan.read(bytes.NewReader(log))
		if !follows {
			return -1, err
		}
		return scan.readable, err
	}
	for cut := range log.Len() {
		if cut%777 != 0 {
			continue
		}
		if offset, err := damage(log.Bytes()[:cut]); err != nil || offset >= 0 {
			f.Fatalf("intact log cut at %d: got damage at %d and error %v", cut, offset, err)
		}
	}
	f.Add(log.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, log []byte) {
		offset, err := damage(log)
		if err != nil || offset >= int64(len(log)) {
			t.Errorf("%d bytes: damage at %d, error %v", len(log), offset, err)
		}
	})
}
