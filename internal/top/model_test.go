package top

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/operator"
)

// fake is a service whose answers a test sets.
type fake struct {
	overview operator.Overview
	fleet    operator.FleetPage
	game     operator.GamePage
	err      error // of every call; nil: it answers
}

func newFake() *fake {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return &fake{
		overview: operator.Overview{
			At: at, Sums: operator.Sums{Fleets: 2, Processes: 3, GameSessions: 1},
			Attention:   &attention.Found{Items: []attention.Item{{What: "Fleet two can start no game session.", Next: "Start a game server.", Kind: "fleet", ID: "fleet-2"}, {What: "Host rack is silent.", Next: "Look at it.", Kind: "host", ID: "h1"}}},
			Fleets:      []operator.FleetLine{{ID: "fleet-1", Name: "arena", Status: "ACTIVE", Processes: 3}, {ID: "fleet-2", Name: "two\x1b[31m", Status: "ACTIVE"}},
			HostsIn:     map[string]int{"silent": 1},
			Hosts:       []operator.Host{{Name: "rack", State: "silent", Serves: "fleet-1", Compute: "rack"}},
			Queues:      []operator.QueueLine{{Name: "ranked", Placements: 7, WaitSeconds: 3}},
			Matchmaking: []operator.ConfigurationLine{{Name: "duel", Tickets: 5}},
			Health:      operator.Health{Calls: 100, Commits: 10, CommitSeconds: 0.02},
			Cluster:     &operator.Cluster{Outlook: "the cluster bears the loss of one node", Members: []operator.Member{{ID: "n1", Role: "leader"}, {ID: "n2", Role: "voter", Missing: true}}},
		},
		fleet: operator.FleetPage{
			Processes:    []operator.ProcessLine{{ID: "fleet-1/rack/p1", Compute: "rack", Standing: "HOSTING"}},
			GameSessions: []operator.GameSessionLine{{ID: "fleet-1/home/g1", Status: "ACTIVE", SeatsHeld: 1, PlayersMax: 4}},
		},
		game: operator.GamePage{GameSessionLine: operator.GameSessionLine{Process: "fleet-1/rack/p1"}, Players: []operator.PlayerSessionLine{{Player: "ann\x07", Status: "ACTIVE"}}},
	}
}

func (f *fake) Overview(context.Context) (*operator.Overview, error) {
	x := f.overview
	return &x, f.err
}
func (f *fake) Fleet(context.Context, string) (*operator.FleetPage, error) { return &f.fleet, f.err }
func (f *fake) GameSession(context.Context, string) (*operator.GamePage, error) {
	return &f.game, f.err
}
func (f *fake) Queue(_ context.Context, name string) (*operator.QueuePage, error) {
	return &operator.QueuePage{QueueLine: operator.QueueLine{Name: name}, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/fleet-1"}, Waiting: []operator.PlacementLine{{ID: "p-1"}}}, f.err
}
func (f *fake) Player(_ context.Context, id string) (*operator.PlayerPage, error) {
	return &operator.PlayerPage{Player: id, Live: []operator.PlayerSessionLine{{ID: "psess-1", GameSession: "fleet-1/home/g1"}}}, f.err
}
func (f *fake) Explain(_ context.Context, kind, id string) (string, error) {
	if kind == "player" {
		return "", &operator.Problem{Message: "player flow is off"}
	}
	return kind + " " + id + " is ACTIVE\nIt is as it is.\n\nTIME  WHAT\n", f.err
}
func (f *fake) Find(_ context.Context, id string) (*operator.Named, error) {
	if id == "nothing" {
		return nil, &operator.Problem{Message: "nothing has the id " + id}
	}
	return &operator.Named{Kind: "game-session", ID: "fleet-1/home/" + id}, f.err
}

// screen drives a model without a terminal. It carries out commands at once, but waits for no timer.
type screen struct {
	*testing.T
	m *model
}

func newScreen(t *testing.T, s Service) *screen {
	x := &screen{t, newModel(t.Context(), s, time.Hour)}
	x.does(x.m.Init())
	return x
}

func (x *screen) does(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	x.sends(cmd())
}

// sends passes a message to the model and executes the loads that follow. It leaves out timers.
func (x *screen) sends(msg tea.Msg) {
	_, cmd := x.m.Update(msg)
	if _, timer := msg.(loaded); !timer {
		x.does(cmd)
	}
}

func (x *screen) press(keys ...string) {
	for _, k := range keys {
		switch k {
		case "enter":
			x.sends(tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			x.sends(tea.KeyPressMsg{Code: tea.KeyEscape})
		case "down":
			x.sends(tea.KeyPressMsg{Code: tea.KeyDown})
		case "up":
			x.sends(tea.KeyPressMsg{Code: tea.KeyUp})
		case "pgdown":
			x.sends(tea.KeyPressMsg{Code: tea.KeyPgDown})
		case "end":
			x.sends(tea.KeyPressMsg{Code: tea.KeyEnd})
		case "home":
			x.sends(tea.KeyPressMsg{Code: tea.KeyHome})
		default:
			for _, r := range k {
				x.sends(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

// shows checks that the screen has all texts, and that it fits its terminal.
func (x *screen) shows(parts ...string) {
	x.Helper()
	text := x.m.View().Content
	for _, part := range parts {
		if !strings.Contains(ansi.Strip(text), part) {
			x.Errorf("no %q in\n%s", part, ansi.Strip(text))
		}
	}
	rows := strings.Split(text, "\n")
	if len(rows) != x.m.height {
		x.Errorf("%d rows on a terminal of %d", len(rows), x.m.height)
	}
	for _, r := range rows {
		if w := ansi.StringWidth(r); w > x.m.width {
			x.Errorf("a row of %d on a terminal of %d: %q", w, x.m.width, r)
		}
	}
}

func (x *screen) lacks(part string) {
	x.Helper()
	if text := ansi.Strip(x.m.View().Content); strings.Contains(text, part) {
		x.Errorf("%q is in\n%s", part, text)
	}
}

func TestOverviewPage(t *testing.T) {
	x := newScreen(t, newFake())
	x.sends(tea.WindowSizeMsg{Width: 120, Height: 60})
	x.shows("Needs attention", "> Fleet two can start no game session.", "Start a game server.", "2 fleets", "arena", "two\ufffd[31m", "Hosts: 1 silent", "ranked", "7", "duel", "5",
		"100 since the start", "2.0 ms a commit", "the cluster bears the loss", "voter, missing")
}

// Rates are computed between two polls. After a restart of the service its counters are shown.
// On a narrow terminal, a first line may be shorter than the margin: the mark, followed by a word that needs a line of its own.
func TestCursorOnAShortLine(t *testing.T) {
	m := &model{width: 18}
	lines := wrapped("! "+strings.Repeat("x", 30), m.width, trouble, operator.Named{Kind: "fleet", ID: "fleet-1"})
	if lines[0].text != "!" {
		t.Fatalf("the first line is %q, want one that is shorter than the margin", lines[0].text)
	}
	if got := ansi.Strip(m.row(&lines[0], true)); got != "> " {
		t.Errorf("drawn as %q", got)
	}
}

func TestRates(t *testing.T) {
	f := newFake()
	x := newScreen(t, f)
	x.sends(tea.WindowSizeMsg{Width: 160, Height: 60})
	f.overview.At = f.overview.At.Add(2 * time.Second)
	f.overview.Health = operator.Health{Calls: 300, Failed: 4, Commits: 30, CommitSeconds: 0.12}
	x.does(x.m.load())
	x.shows("100.0/s (failed 2.0/s", "10.0 commits/s, 5.0 ms a commit")
	f.overview.At = f.overview.At.Add(2 * time.Second)
	f.overview.Health = operator.Health{Calls: 5}
	x.does(x.m.load())
	x.shows("5 since the start")
	f.overview.At = f.overview.At.Add(2 * time.Second)
	f.overview.Health = operator.Health{Calls: 900, Failed: 9, Commits: 90}
	x.does(x.m.load())
	f.overview.At = f.overview.At.Add(2 * time.Second)
	f.overview.Health = operator.Health{Calls: 950, Failed: 1, Commits: 95} // of another node
	x.does(x.m.load())
	x.shows("950 since the start (failed 1,")
}

func TestDrillDown(t *testing.T) {
	x := newScreen(t, newFake())
	x.sends(tea.WindowSizeMsg{Width: 100, Height: 50})
	x.press("enter")
	x.shows("muster top > fleet fleet-2", "fleet fleet-2 is ACTIVE", "It is as it is.", "> g1")
	x.press("esc", "down", "enter") // a host has no explanation
	x.shows("needs attention", "Host rack is silent.", "Look at it.")
	x.press("esc", "down", "enter")
	x.shows("fleet fleet-1 is ACTIVE", "g1", "1/4", "p1")
	x.press("enter")
	x.shows("game-session fleet-1/home/g1", "PLAYER")
}

func TestDrillDownToPlayers(t *testing.T) {
	x := newScreen(t, newFake())
	x.sends(tea.WindowSizeMsg{Width: 100, Height: 50})
	x.press("/g1", "enter")
	x.shows("muster top > game-session fleet-1/home/g1", "PLAYER", "ann\ufffd")
	x.press("down", "enter")
	x.shows("Player sessions now", "psess-1")
	x.press("esc", "esc")
	x.shows("Needs attention")
	x.press("esc") // stays
	x.shows("Needs attention")
}

func TestSearch(t *testing.T) {
	f := newFake()
	x := newScreen(t, f)
	x.press("/nothing?q")
	x.shows("Find: nothing?q_") // keys are text here
	x.sends(tea.KeyPressMsg{Code: tea.KeyBackspace})
	x.sends(tea.KeyPressMsg{Code: tea.KeyBackspace})
	x.press("enter")
	x.shows("nothing has the id nothing", "Needs attention")
	x.press("/g1", "esc")
	x.lacks("Find:")
	x.press("/", "enter")
	x.shows("Needs attention")
	x.press("/")
	x.sends(tea.PasteMsg{Content: "a\x1b[31m\n" + strings.Repeat("x", 2*wordsMost)})
	if got := len(x.m.words); got != wordsMost || strings.ContainsRune(string(x.m.words), '\x1b') {
		t.Errorf("%d characters: %q", got, string(x.m.words[:8]))
	}
	x.shows("xxx_")
	f.err = &url.Error{Op: "Get", Err: errors.New("refused")}
	x.press("enter")
	x.shows("The search failed")
}

// A lost connection is reported, loaded data stays, and the page continues when the service is back.
func TestLostConnection(t *testing.T) {
	f := newFake()
	x := newScreen(t, f)
	f.err = errors.New("no service answers at \x1b]0;x")
	x.press("r")
	x.shows("CONNECTION LOST at ", "no service answers at \ufffd]0;x", "Needs attention", "arena")
	since := x.m.lostAt
	x.press("r")
	if x.m.lostAt != since {
		t.Errorf("lost at %v, then %v", since, x.m.lostAt)
	}
	f.err = &operator.Problem{Message: "access key X is revoked"}
	x.press("r")
	x.shows("Not current since ", "the service answers: access key X is revoked")
	f.err = nil
	x.press("r")
	x.lacks("LOST")
	x.lacks("Not current")
}

// A late answer for a page that was left is not shown on the page that is open now.
func TestLateAnswer(t *testing.T) {
	x := newScreen(t, newFake())
	late := x.m.load()
	x.press("/g1", "enter")
	x.sends(late())
	x.shows("game-session fleet-1/home/g1")
	x.lacks("Needs attention")
}

func TestEveryLoadIsFollowedByAnother(t *testing.T) {
	x := newScreen(t, newFake())
	for _, err := range []error{nil, errors.New("gone")} {
		if x.m.takes(loaded{x.m.request, &objectSheet{}, err, time.Now()}) == nil {
			t.Errorf("after %v: no timer", err)
		}
	}
	before := x.m.request
	if _, cmd := x.m.Update(due{before}); cmd == nil || x.m.request != before+1 {
		t.Error("when the timer ends, nothing is loaded")
	}
	if _, cmd := x.m.Update(due{before}); cmd != nil {
		t.Error("the timer of an earlier page loads another time")
	}
}

func TestHelpAndEnd(t *testing.T) {
	x := newScreen(t, newFake())
	x.press("?")
	x.shows("ends muster top", "finds any id")
	x.press("?")
	x.shows("Needs attention")
	for _, k := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := x.m.Update(k)
		if cmd == nil {
			t.Fatalf("%s does not end", k)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not end", k)
		}
	}
}

// Every line of every page can be reached on a terminal of any size.
func TestSmallTerminals(t *testing.T) {
	f := newFake()
	for i := range 30 {
		f.overview.Fleets = append(f.overview.Fleets, operator.FleetLine{ID: fmt.Sprintf("fleet-x%d", i), Name: strings.Repeat("långt名前", 20)})
	}
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 4}, {1, 1}, {300, 100}} {
		x := newScreen(t, f)
		x.sends(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		x.shows()
		seen := map[string]bool{}
		for range len(x.m.drawn()) {
			x.shows()
			if at := x.m.drawn()[x.m.page().cursor].to; at.Kind == "fleet" {
				seen[at.ID] = true
			}
			x.press("down")
		}
		if len(seen) != 32 {
			t.Errorf("%v: down reaches %d fleets, want 32", size, len(seen))
		}
		x.press("home")
		x.shows("muster top")
		if p := x.m.page(); p.top != 0 {
			t.Errorf("%v: home leads to line %d", size, p.top)
		}
		x.press("end")
		all, p := x.m.drawn(), x.m.page()
		if p.top != max(0, len(all)-x.m.room()) {
			t.Errorf("%v: end leads to line %d of %d", size, p.top, len(all))
		}
		x.press("home", "?")
		x.shows()
		for range 100 {
			x.press("pgdown")
		}
		x.shows()
	}
}

func TestOnce(t *testing.T) {
	var text strings.Builder
	if err := Once(t.Context(), newFake(), &text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Needs attention", "arena", "two\ufffd[31m"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in\n%s", part, text.String())
		}
	}
	if strings.ContainsRune(text.String(), '\x1b') {
		t.Errorf("escape sequences in %q", text.String())
	}
	if err := Once(t.Context(), &fake{err: errors.New("gone")}, &text); err == nil {
		t.Error("no error")
	}
}
