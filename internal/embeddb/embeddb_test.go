package embeddb

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const holdEnv = "EMBEDDB_TEST_HOLD"

// TestMain is also the main function of the other process: with holdEnv set it opens that directory, prints that, and waits to be killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(holdEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	db, err := Open(Config{Dir: dir, Program: "the holder"}, func(*pebble.Options) {})
	if err == nil {
		err = db.Set([]byte("key"), []byte("value"), pebble.Sync)
	}
	fmt.Println(err)
	for {
		time.Sleep(time.Hour)
		runtime.KeepAlive(db) // a collection of garbage would close its lock
	}
}

func TestASecondProcessIsToldWhoHoldsTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdEnv+"="+dir)
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill() })
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the holder said %q, error %v", line, err)
	}

	_, err = Open(Config{Dir: dir, Program: "the second"}, func(*pebble.Options) {})
	inUse, ok := errors.AsType[*InUse](err)
	if !ok {
		t.Fatalf("second open: got %v, want *InUse", err)
	}
	if inUse.Holder.PID != holder.Process.Pid || inUse.Holder.Program != "the holder" || inUse.Holder.Since.IsZero() {
		t.Errorf("second open: got holder %+v, want pid %d", inUse.Holder, holder.Process.Pid)
	}
	want := fmt.Sprintf("is in use by pid %d (the holder, since 2", holder.Process.Pid)
	if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: got %q, want it to contain %q and %q", err, want, dir)
	}

	// The lock ends with its process, whatever the file beside it says.
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	db, err := Open(Config{Dir: dir, Program: "the second"}, func(*pebble.Options) {})
	if err != nil {
		t.Fatalf("open after the holder was killed: %v", err)
	}
	defer db.Close()
	if value, closer, err := db.Get([]byte("key")); err != nil || string(value) != "value" {
		t.Errorf("what the killed holder wrote: got %q and error %v", value, err)
	} else {
		closer.Close()
	}
	if _, err := Open(Config{Dir: dir}, func(*pebble.Options) {}); err == nil {
		t.Error("second open in the same process: no error")
	}
	t.Chdir(filepath.Dir(dir))
	if _, err := Open(Config{Dir: "data"}, func(*pebble.Options) {}); err == nil {
		t.Error("second open in the same process by another spelling: no error")
	}
}

func TestADirectoryThatCannotBeMadeIsNotInUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Dir: filepath.Join(file, "data")}, func(*pebble.Options) {})
	if _, ok := errors.AsType[*InUse](err); err == nil || ok {
		t.Errorf("open below a file: got %v, want an error that is not *InUse", err)
	}
}
