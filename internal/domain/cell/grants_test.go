package cell

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// grantsWorld returns a cell at the level of the room.
func grantsWorld(t *testing.T) *world {
	w := newWorld(t, DefaultConfig())
	w.answers("raise the level", &kernel.RaiseLevel{To: w.cell.KnownLevel()}, 0)
	return w
}

func asked(n int, address string) *grants.AskDevice {
	return &grants.AskDevice{UserCode: fmt.Sprint("USER-", n), Code: fmt.Sprint("device-", n), Client: "cli", Name: "a CLI", Address: address}
}

// A device waits for a person, whose answer counts once, and collects its tokens once, all within the life of its request.
func TestDevices(t *testing.T) {
	w := grantsWorld(t)
	check := w.answers
	ask := asked(1, "192.0.2.1")
	check("ask", ask, 0)
	if want := w.now.Add(grants.DeviceLife); ask.Expires != want {
		t.Errorf("it expires at %v, want %v", ask.Expires, want)
	}
	check("ask again", asked(1, "192.0.2.1"), 0)
	other := asked(1, "192.0.2.1")
	other.Code = "another"
	check("ask with the code of another", other, domain.Conflict)
	check("ask without a code", &grants.AskDevice{UserCode: "A", Client: "cli", Address: "a"}, domain.Invalid)

	collect := &grants.CollectDevice{Code: "device-1", Client: "cli"}
	check("collect early", collect, domain.NotReady)
	check("collect as another client", &grants.CollectDevice{Code: "device-1", Client: "other"}, domain.NotFound)
	check("collect what nobody asked for", &grants.CollectDevice{Code: "device-9", Client: "cli"}, domain.NotFound)
	check("approve", &grants.AnswerDevice{UserCode: "USER-1", SignIn: "s1", Approve: true}, 0)
	check("approve again", &grants.AnswerDevice{UserCode: "USER-1", SignIn: "s1", Approve: true}, 0)
	check("another person approves", &grants.AnswerDevice{UserCode: "USER-1", SignIn: "s2", Approve: true}, domain.Conflict)
	check("deny what was approved", &grants.AnswerDevice{UserCode: "USER-1", SignIn: "s1"}, domain.Conflict)
	check("approve a code that no device has", &grants.AnswerDevice{UserCode: "USER-7", SignIn: "s1", Approve: true}, domain.NotFound)
	check("collect", collect, 0)
	check("collect again", collect, domain.Conflict)
	v := w.cell.View()
	if x, ok := v.DeviceOf("device-1"); !ok || x.SignIn != "s1" || x.Standing != grants.Collected {
		t.Errorf("it was collected, and is %+v", x)
	}

	check("ask", asked(2, "192.0.2.1"), 0)
	check("deny", &grants.AnswerDevice{UserCode: "USER-2", SignIn: "s1"}, 0)
	check("collect what was denied", &grants.CollectDevice{Code: "device-2", Client: "cli"}, domain.Conflict)

	check("ask", asked(3, "192.0.2.1"), 0)
	check("ask", asked(4, "192.0.2.1"), 0)
	check("approve", &grants.AnswerDevice{UserCode: "USER-4", SignIn: "s1", Approve: true}, 0)
	var stored bytes.Buffer
	if err := w.cell.Freeze().Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was, is := w.cell.View(), loaded.View()
	if !slices.Equal(was.Devices(), is.Devices()) || len(is.Devices()) != 4 {
		t.Errorf("a snapshot has %v, want %v", is.Devices(), was.Devices())
	}
	w.now = w.now.Add(grants.DeviceLife)
	check("approve late", &grants.AnswerDevice{UserCode: "USER-3", SignIn: "s1", Approve: true}, domain.NotFound)
	check("collect late", &grants.CollectDevice{Code: "device-4", Client: "cli"}, domain.NotFound)
	check("ask", asked(5, "192.0.2.1"), 0)
	if v := w.cell.View(); len(v.Devices()) != 1 {
		t.Errorf("the state has %v, want what has not expired", v.Devices())
	}
}

// The requests of an address, and of all, have a bound; those that a person has answered do not count for the address.
func TestDevicesAreBounded(t *testing.T) {
	w := grantsWorld(t)
	n := 0
	for ; n < grants.DevicesOfAddress; n++ {
		w.answers("ask", asked(n, "192.0.2.1"), 0)
	}
	w.answers("one too many of the address", asked(n, "192.0.2.1"), domain.LimitExceeded)
	w.answers("answer one", &grants.AnswerDevice{UserCode: "USER-0", SignIn: "s", Approve: true}, 0)
	w.answers("ask", asked(n, "192.0.2.1"), 0)
	for n++; n < grants.DevicesMax; n++ {
		w.answers("ask", asked(n, fmt.Sprint("198.18.", n/grants.DevicesOfAddress, ".1")), 0)
	}
	w.answers("one too many", asked(n, "198.51.100.1"), domain.LimitExceeded)
	w.now = w.now.Add(grants.DeviceLife)
	w.answers("ask when the others have expired", asked(n, "198.51.100.1"), 0)
}

// A code is used once. It is remembered until it has expired anyway.
func TestUsedCodes(t *testing.T) {
	w := grantsWorld(t)
	check := w.answers
	use := func(id string, valid time.Duration) *grants.UseCode {
		return &grants.UseCode{ID: id, SignIn: "s1", Expires: w.now.Add(valid)}
	}
	check("use", use("a", time.Minute), 0)
	check("use again", use("a", time.Minute), domain.Conflict)
	check("use one that has expired", use("b", 0), domain.NotFound)
	check("use one that lives too long", use("b", grants.CodeLifeMax+1e6), domain.Invalid)
	check("use one of no session", &grants.UseCode{ID: "b", Expires: w.now.Add(time.Minute)}, domain.Invalid)
	for i := range grants.CodesMax - 1 {
		check("use", use(fmt.Sprint("c", i), grants.CodeLifeMax), 0)
	}
	check("use one too many", use("d", time.Minute), domain.LimitExceeded)
	w.now = w.now.Add(time.Minute)
	check("use when one has expired", use("d", time.Minute), 0)
	if v := w.cell.View(); len(v.UsedCodes()) != grants.CodesMax {
		t.Errorf("%d used codes are remembered, want %d", len(v.UsedCodes()), grants.CodesMax)
	}
}

// Each kind of what must not be used twice has its own bounds, and none is taken for another.
func TestUsedOnceByKind(t *testing.T) {
	w := newRevoking(t)
	do := func(cmd *grants.UseCode) domain.Reason {
		refusal, _ := errors.AsType[*domain.Refusal](w.do(cmd))
		if refusal == nil {
			return 0
		}
		return refusal.Reason
	}
	soon := w.now.Add(time.Minute)
	for what, x := range map[string]struct {
		cmd  grants.UseCode
		want domain.Reason
	}{
		"an unknown kind":          {grants.UseCode{Kind: 9, ID: "a", SignIn: "s", Expires: soon}, domain.Invalid},
		"a code as a proof":        {grants.UseCode{ID: "proof:a", SignIn: "s", Expires: soon}, domain.Invalid},
		"a proof for too long":     {grants.UseCode{Kind: grants.Proof, ID: "a", SignIn: "s", Expires: w.now.Add(grants.OnceLifeMax + time.Second)}, domain.Invalid},
		"a code as long as proofs": {grants.UseCode{ID: "a", SignIn: "s", Expires: w.now.Add(grants.OnceLifeMax)}, domain.Invalid},
	} {
		if got := do(&x.cmd); got != x.want {
			t.Errorf("%s: %v, want %v", what, got, x.want)
		}
	}
	for _, kind := range []grants.Once{grants.Code, grants.Proof, grants.Logout} {
		cmd := func() *grants.UseCode { return &grants.UseCode{Kind: kind, ID: "a", SignIn: "s", Expires: soon} }
		if got := do(cmd()); got != 0 {
			t.Errorf("kind %d: %v", kind, got)
		}
		if got := do(cmd()); got != domain.Conflict {
			t.Errorf("kind %d again: %v", kind, got)
		}
	}
	for i := range grants.ProofsOfSession - 1 {
		if got := do(&grants.UseCode{Kind: grants.Proof, ID: fmt.Sprint(i), SignIn: "s", Expires: soon}); got != 0 {
			t.Fatal(got)
		}
	}
	if got := do(&grants.UseCode{Kind: grants.Proof, ID: "more", SignIn: "s", Expires: soon}); got != domain.LimitExceeded {
		t.Errorf("too many of one session: %v", got)
	}
	if got := do(&grants.UseCode{Kind: grants.Proof, ID: "more", SignIn: "other", Expires: soon}); got != 0 {
		t.Errorf("one of another session: %v", got)
	}
	w.now = soon
	if got := do(&grants.UseCode{Kind: grants.Proof, ID: "later", SignIn: "s", Expires: w.now.Add(time.Minute)}); got != 0 {
		t.Errorf("when the others are over: %v", got)
	}
}
