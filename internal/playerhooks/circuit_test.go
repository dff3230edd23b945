package playerhooks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// clinic is a backend whose health a test decides, on a clock that the test moves.
type clinic struct {
	t     *testing.T
	hooks *Hooks
	log   bytes.Buffer

	mu     sync.Mutex
	now    time.Time
	asked  int
	answer func(hook Name, player string) (status int, body string)
}

func newClinic(t *testing.T, names ...Name) *clinic {
	x := &clinic{t: t, now: time.Unix(1_800_000_000, 0)}
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asked++
		var player string
		for _, p := range []string{"ann", "bob", "cem", "dia", "eve"} {
			if bytes.Contains(body, []byte(`"player_id":"`+p+`"`)) {
				player = p
			}
		}
		for _, n := range names {
			if bytes.Contains(body, []byte(`"hook":"`+string(n)+`"`)) {
				status, text := x.answer(n, player)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			}
		}
	})
	c := Config{Hooks: map[Name]Hook{}, Concurrency: 4}
	for _, n := range names {
		c.Hooks[n] = Hook{URL: url, OnTimeout: Deny, Timeout: time.Minute}
	}
	x.hooks = New(c, keysOf, slog.New(slog.NewTextHandler(&x.log, nil)))
	t.Cleanup(x.hooks.Close)
	for _, h := range x.hooks.now.Get().hooks {
		h.circuit.now = x.clock
		h.receiver.now = x.clock
	}
	return x
}

func (x *clinic) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *clinic) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *clinic) answers(f func(hook Name, player string) (int, string)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = f
}

func well(Name, string) (int, string) { return 200, `{"allow":true}` }
func ill(Name, string) (int, string)  { return 503, "" }

// asks sends a question about a player, and checks whether it was sent and whether it was answered.
func (x *clinic) asks(what string, n Name, player string, sent, ok bool) {
	x.t.Helper()
	x.mu.Lock()
	x.asked = 0
	x.mu.Unlock()
	_, err := Ask[Verdict](x.t.Context(), x.hooks, n, PlayerInvited{PlayerID: player})
	x.mu.Lock()
	defer x.mu.Unlock()
	if (err == nil) != ok || (x.asked == 1) != sent || errors.Is(err, errCircuitOpen) == sent {
		x.t.Errorf("%s: %v after %d requests", what, err, x.asked)
	}
}

// A receiver that is down gets no requests for a while, then a few requests test whether it is back.
func TestCircuit(t *testing.T) {
	x := newClinic(t, BeforeInvite)
	x.answers(ill)
	fail := func() {
		t.Helper()
		for _, player := range []string{"ann", "bob", "ann", "bob", "cem"} {
			x.asks("a failure", BeforeInvite, player, true, false)
		}
		x.asks("in the pause", BeforeInvite, "dia", false, false)
	}
	tries := func() {
		t.Helper()
		for _, player := range []string{"ann", "dia"} {
			x.asks("one that tries", BeforeInvite, player, true, false)
			x.asks("the same player again", BeforeInvite, player, false, false)
		}
		x.asks("the last one that tries", BeforeInvite, "eve", true, false)
		x.asks("in the next pause", BeforeInvite, "bob", false, false)
	}
	fail()
	x.pass(firstPause)
	tries()
	x.pass(firstPause)
	x.asks("the second pause is longer", BeforeInvite, "bob", false, false)
	x.pass(firstPause)
	x.answers(well)
	x.asks("it is back", BeforeInvite, "bob", true, true)
	x.asks("and stays so", BeforeInvite, "bob", true, true)
	x.answers(ill)
	fail()
	for range 20 {
		x.pass(longestPause)
		tries()
	}
	log := x.log.String()
	if n := strings.Count(log, "does not answer: no requests are sent"); n != 2 || strings.Count(log, "answers again") != 1 {
		t.Errorf("the log: %s", log)
	}
}

// A player whose requests make the backend fail does not stop the requests for others, however frequent; nor do two such players.
func TestOnePlayersQuestionsPauseNothing(t *testing.T) {
	x := newClinic(t, BeforeInvite)
	poison := map[string]bool{"ann": true, "bob": true}
	x.answers(func(_ Name, player string) (int, string) {
		if poison[player] {
			return 500, ""
		}
		return 200, `{"allow":true}`
	})
	for range 3 * failuresMax {
		x.asks("poison", BeforeInvite, "ann", true, false)
		x.asks("poison of a friend", BeforeInvite, "bob", true, false)
	}
	x.asks("somebody else", BeforeInvite, "cem", true, true)

	// When the receiver is paused for another reason, they cannot prolong the pause.
	x.answers(ill)
	for _, player := range []string{"ann", "bob", "cem", "dia", "eve"} {
		x.asks("down", BeforeInvite, player, true, false)
	}
	x.answers(func(_ Name, player string) (int, string) {
		if poison[player] {
			return 500, ""
		}
		return 200, `{"allow":true}`
	})
	for range 10 {
		x.pass(firstPause)
		x.asks("poison tries", BeforeInvite, "ann", true, false)
		x.asks("poison of a friend tries", BeforeInvite, "bob", true, false)
		x.asks("poison tries again", BeforeInvite, "ann", false, false)
	}
	x.asks("somebody else", BeforeInvite, "cem", true, true)
	x.asks("and again", BeforeInvite, "cem", true, true)
}

// An invalid answer shows that the receiver runs. It counts as no answer, but begins no pause.
func TestNonsensePausesNothing(t *testing.T) {
	x := newClinic(t, BeforeInvite)
	kinds := []func(Name, string) (int, string){
		func(Name, string) (int, string) { return 200, "oops" },
		func(Name, string) (int, string) { return 200, `{"message":"well"}` },
		func(Name, string) (int, string) { return 403, "" },
		func(Name, string) (int, string) { return 404, "" },
		func(Name, string) (int, string) { return 302, "" },
	}
	for _, kind := range kinds {
		x.answers(kind)
		for i := range 2 * failuresMax {
			x.asks("nonsense", BeforeInvite, []string{"ann", "bob", "cem"}[i%3], true, false)
		}
	}
	if n := strings.Count(x.log.String(), "no usable answer"); n != 1 {
		t.Errorf("the log tells it %d times in a minute: %s", n, &x.log)
	}
	x.pass(complainEvery)
	x.asks("nonsense", BeforeInvite, "ann", true, false)
	if n := strings.Count(x.log.String(), "no usable answer"); n != 2 {
		t.Errorf("the log tells it %d times in two minutes: %s", n, &x.log)
	}
	x.answers(ill)
	for _, player := range []string{"ann", "bob", "cem", "dia"} {
		x.asks("down", BeforeInvite, player, true, false)
	}
	x.answers(kinds[0])
	x.asks("nonsense between failures", BeforeInvite, "ann", true, false)
	x.answers(ill)
	x.asks("the row begins anew", BeforeInvite, "eve", true, false)
	x.asks("the row begins anew", BeforeInvite, "ann", true, false)
}

// A hook that always fails does not pause the other hooks of its receiver.
func TestOneHookPausesNoOther(t *testing.T) {
	x := newClinic(t, BeforeInvite, BeforeJoinParty)
	x.answers(func(n Name, _ string) (int, string) {
		if n == BeforeJoinParty {
			return 500, ""
		}
		return 200, `{"allow":true}`
	})
	for _, player := range []string{"ann", "bob", "cem", "dia", "eve"} {
		x.asks("of the hook that fails", BeforeJoinParty, player, true, false)
	}
	x.asks("in its pause", BeforeJoinParty, "ann", false, false)
	x.asks("of the other hook", BeforeInvite, "ann", true, true)
}

// After a pause only a few requests are sent as a test. Those that end without a result make room for others.
func TestCircuitTries(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := circuit{now: func() time.Time { return now }}
	player := func(i int) string { return fmt.Sprint("player", i) }
	opened := 0
	for i := range 2 * failuresMax { // as many are under way when the pause begins
		if _, first := c.failed(player(i)); first {
			opened++
		}
	}
	if opened != 1 || c.closed("ann") {
		t.Errorf("opened %d times", opened)
	}
	now = now.Add(firstPause)
	if !c.closed("ann") || !c.closed("bob") || !c.closed("cem") || c.closed("dia") {
		t.Errorf("want %d questions after the pause", triesMax)
	}
	if pause, _ := c.failed("eve"); pause != 0 { // of one that was under way for long
		t.Errorf("a pause of %s for an old question", pause)
	}
	c.gaveUp("bob")
	if !c.closed("dia") || c.closed("eve") {
		t.Error("want another one when one has given up")
	}
	c.failed("ann")
	c.failed("cem")
	now = now.Add(time.Hour)
	if c.closed("eve") {
		t.Error("one more while the last try is under way")
	}
	if !c.answered() || c.answered() || !c.closed("ann") || !c.closed("eve") {
		t.Error("want all when it is back")
	}
}
