package state

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agentproto"
)

func TestStateSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	f, s, unlock, err := Open(dir)
	if err != nil || len(s.Processes) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	code := 3
	want := State{Version: version, BootID: "b",
		Processes: []Process{{ID: "p", Record: process.Record{PID: 7, Start: "x", Group: "/g"}, LaunchPath: "server", Parameters: "--a", Slot: 2, Ports: map[string]int{"": 7000},
			Dir: "/d", Started: time.Unix(5, 0).UTC(), Registered: true, Session: "gs", Reason: agentproto.CustomerInitiated}},
		Ended: []Ended{{ID: "q", Reason: agentproto.Crashed, Exit: agentproto.Exit{Code: &code, EndedMillis: 9}}},
	}
	if err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Fatalf("a second agent: %v", err)
	}
	unlock()
	_, got, unlock, err := Open(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
	}
	unlock()
}

func TestEndsAreBounded(t *testing.T) {
	f, s, unlock, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for i := range EndedMax + 10 {
		s.Ended = append(s.Ended, Ended{ID: strconv.Itoa(i)})
	}
	if err := f.Write(s); err != nil {
		t.Fatal(err)
	}
	if s, err = f.read(); err != nil || len(s.Ended) != EndedMax || s.Ended[0].ID != "10" {
		t.Errorf("%d ends, %v, want the newest %d", len(s.Ended), err, EndedMax)
	}
}

func TestFilesThatAreNoState(t *testing.T) {
	for content, want := range map[string]string{"{": "end them", `{"version":99}`: "another release"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}
