package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/agent/agenttest"
	"github.com/musterhq/muster/internal/waittest"
)

func TestMain(m *testing.M) {
	agenttest.Main()
	os.Exit(m.Run())
}

// world has process groups of one kind.
type world struct {
	*testing.T
	groups *Groups
	output string
}

// worlds runs a test with and without cgroups, as far as this host has them.
func worlds(t *testing.T, test func(w world)) {
	t.Run("without cgroups", func(t *testing.T) {
		groups, err := NewGroups("none")
		if err != nil {
			t.Fatal(err)
		}
		test(world{t, groups, filepath.Join(t.TempDir(), "output")})
	})
	t.Run("with cgroups", func(t *testing.T) {
		groups, err := NewGroups("")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(groups.Describe(), "none") {
			t.Skip("this host has none: ", groups.Describe())
		}
		test(world{t, groups, filepath.Join(t.TempDir(), "output")})
	})
}

func (w world) start(play ...string) *Process {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	out, err := os.Create(w.output)
	if err != nil {
		w.Fatal(err)
	}
	defer out.Close()
	p, err := w.groups.Start(Command{ID: uuid.NewString(), Path: self, Args: agenttest.Args(play...), Env: os.Environ(), Output: out})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		p.Kill()
		<-p.Done()
	})
	return p
}

// wants waits until the output has a line.
func (w world) wants(line string) {
	w.Helper()
	waittest.Until(w, "output has "+line, func() bool {
		text, _ := os.ReadFile(w.output)
		return strings.Contains("\n"+string(text), "\n"+line)
	})
}

func (w world) ends(p *Process) Exit {
	w.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(agenttest.Patience):
		w.Fatal("the process does not end")
		return Exit{}
	}
}

func TestExitCodes(t *testing.T) {
	worlds(t, func(w world) {
		for code, crashed := range map[int]bool{0: false, 3: true} {
			exit := w.ends(w.start("exit", strconv.Itoa(code)))
			if !exit.Known || exit.Code != code || exit.Signal != "" || exit.Crashed() != crashed || exit.At.IsZero() {
				w.Errorf("exit %d: %+v", code, exit)
			}
		}
	})
}

func TestTerminate(t *testing.T) {
	worlds(t, func(w world) {
		p := w.start("wait")
		w.wants("ready")
		if err := p.Terminate(); err != nil {
			w.Fatal(err)
		}
		if exit := w.ends(p); exit.Crashed() {
			w.Errorf("%+v, want a normal end", exit)
		}
		if err := errors.Join(p.Terminate(), p.Kill()); err != nil {
			w.Errorf("after the end: %v", err)
		}
	})
}

func TestPathsThatCannotRun(t *testing.T) {
	worlds(t, func(w world) {
		text := filepath.Join(w.TempDir(), "text")
		if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
			w.Fatal(err)
		}
		for _, path := range []string{filepath.Join(w.TempDir(), "none"), w.TempDir(), text} {
			_, err := w.groups.Start(Command{ID: uuid.NewString(), Path: path})
			_, notFound := errors.AsType[*exec.Error](err)
			_, notRun := errors.AsType[*fs.PathError](err)
			if !notFound && !notRun {
				w.Errorf("%s: %v", path, err)
			}
		}
	})
}

func TestAdoptWhatIsGone(t *testing.T) {
	worlds(t, func(w world) {
		p := w.start("wait")
		w.wants("ready")
		other := p.Record()
		other.Start += "0" // the number now belongs to another process
		other.Group = ""   // which is not in the group of the one that is gone: what is left there ends
		if _, err := w.groups.Adopt("other", other); !errors.Is(err, ErrGone) {
			w.Errorf("another process of that number: %v, want ErrGone", err)
		}
		select {
		case <-p.Done():
			w.Error("the other process was ended")
		default:
		}
		p.Kill()
		w.ends(p)
		if _, err := w.groups.Adopt(p.id, p.Record()); !errors.Is(err, ErrGone) {
			w.Errorf("ended: %v, want ErrGone", err)
		}
	})
}

// TestAdoptFromAnotherAgent kills a process that an agent started which has ended since.
func TestAdoptFromAnotherAgent(t *testing.T) {
	if file := os.Getenv("TEST_RECORD"); file != "" { // the other agent
		groups, err := NewGroups("none")
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(file + ".output")
		if err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p, err := groups.Start(Command{ID: os.Getenv("TEST_ID"), Path: self, Args: agenttest.Args("stubborn"), Env: os.Environ(), Output: out})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p.Record())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	groups, err := NewGroups("none")
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, groups, ""}
	id, file := uuid.NewString(), filepath.Join(t.TempDir(), "record")
	other := exec.Command(os.Args[0], "-test.run", "^TestAdoptFromAnotherAgent$")
	other.Env = append(os.Environ(), "TEST_RECORD="+file, "TEST_ID="+id)
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var record Record
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	p, err := groups.Adopt(id, record)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	w.ends(p)
}
