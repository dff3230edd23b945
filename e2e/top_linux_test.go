package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// top runs muster top in a terminal of a given size.
func (s *service) top(width, height int, environ ...string) *screen {
	s.t.Helper()
	cmd := exec.Command(musterBinary, "top", "--data", s.data, "--listen", s.address, "--every", "500ms")
	cmd.Env = cleanEnvironment(append([]string{"TERM=xterm-256color"}, environ...)...)
	return newScreen(s.t, width, height, cmd)
}

// ends presses q, and checks that the program ends normally and restores the terminal.
func (s *screen) ends() {
	s.t.Helper()
	s.press("q")
	if err := <-s.done; err != nil {
		s.t.Errorf("muster top: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if raw := string(s.raw); !strings.Contains(raw, "\x1b[?1049h") || !strings.Contains(raw[strings.LastIndex(raw, "\x1b[?1049h"):], "\x1b[?1049l") {
		s.t.Error("muster top did not give the terminal back")
	}
	if s.unknown != "" {
		s.t.Errorf("the screen of this test does not know ESC %q", s.unknown)
	}
}

// A person follows a player through muster top while the service runs, is down, and is back.
func TestTop(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server := p.dial("process-1", "")
	game := server.host(t, 4)
	must(t, server.AcceptPlayer(t.Context(), game, p.mustReserve(game, "ann")))

	s := p.top(80, 24)
	s.shows("Needs attention", "Fleet dev can start no game session in custom-home", "1 fleet, 1 compute, 1 server process (0 free), 1 game session", "1 connected, 0 seats reserved, 3 seats free", "commits/s")
	s.press("\r") // what needs attention
	s.shows("muster top > fleet "+p.fleet, "fleet "+p.fleet+" is ACTIVE", "Game sessions", "ACTIVE  1/4")
	s.press("\r")
	s.shows("> game-session "+p.fleet, "It is running.", "PLAYER", "ann     ACTIVE")
	s.press("\x1b[B\r") // down, and the player
	s.shows("player ann", "Player sessions now", "psess-")
	s.press("\x1b")
	s.shows("It is running.")
	s.press("/nothing-has-it\r")
	s.shows("nothing has the id or the name", "It is running.")
	s.press("/process-1\r")
	s.shows("> process "+p.fleet+"/DesktopPC", "process-1")
	s.press("?")
	s.shows("ends muster top")
	s.press("?\x1b[D\x1b[D\x1b[D")
	s.shows("Needs attention")

	p.kill()
	s.shows("CONNECTION LOST at ", "Needs attention")
	p.start()
	waittest.Until(t, "muster top to go on", func() bool {
		text := s.text()
		return !strings.Contains(text, "LOST") && strings.Contains(text, "Needs attention")
	})
	p.mustReserve(game, "bob")
	s.shows("1 connected, 1 seat reserved, 2 seats free")

	s.resize(40, 10)
	s.shows("muster top", "Needs attention", "? keys") // the line of keys is truncated here
	s.ends()
}

func TestTopWithoutColour(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	for name, environ := range map[string][]string{"in colour": nil, "without": {"NO_COLOR=1"}} {
		s := p.top(80, 24, environ...)
		s.shows("> Fleet dev can start no game session in custom-home: no server process is", "dev    ACTIVE")
		s.press("\x1b[B")
		s.shows("! Fleet dev can start")
		s.ends()
		if coloured := strings.Contains(string(s.raw), "\x1b[31m"); coloured == (environ != nil) {
			t.Errorf("%s: colours %v", name, coloured)
		}
	}
}

func TestTopWithoutTerminal(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	if out := p.command("top", "--once", "--data", p.data, "--listen", p.address); !strings.Contains(out, "Fleet dev can start no game session in custom-home") || strings.ContainsRune(out, '\x1b') {
		t.Errorf("--once prints %q", out)
	}
	for want, args := range map[string][]string{
		"muster top --once prints the overview without one": {"--listen", p.address},
		"no service answers at":                             {"--once", "--listen", porttest.Free(t)},
		"want at least 500ms":                               {"--every", "1ms", "--listen", p.address},
	} {
		cmd := exec.Command(musterBinary, append([]string{"top", "--data", p.data}, args...)...)
		cmd.Env = cleanEnvironment()
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: got %v\n%s\nwant %q", args, err, out, want)
		}
	}
}
