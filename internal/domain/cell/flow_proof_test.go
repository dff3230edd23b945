package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestLoginAgain: the repeat of a login whose answer was lost gives the same login session, to the same client only.
func TestLoginAgain(t *testing.T) {
	w := newFlowWorld(t, nil)
	ticket := w.id()
	w.must(&playerflow.IssueLoginTicket{Hash: ticket, Player: "ann", Life: time.Minute, Once: true})
	first := &playerflow.Login{Player: "ann", Ticket: ticket, Request: "r1", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}
	w.must(first)
	again := func(player, request string, ticket domain.UUID) *playerflow.Login {
		return &playerflow.Login{Player: player, Ticket: ticket, Request: request, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}
	}
	number := w.number
	repeat := again("ann", "r1", ticket)
	w.must(repeat)
	if repeat.Made.ID != first.LoginSessionID || repeat.Made.Epoch != 1 || repeat.Flow != first.Flow {
		t.Errorf("the repeat: %+v, %+v; the first was %+v, %+v", repeat.Made, repeat.Flow, first.Made, first.Flow)
	}
	if w.number != number {
		t.Error("the repeat changed something")
	}
	w.refused(again("ann", "r2", ticket), flow.Unauthenticated)
	w.refused(again("ann", "", ticket), flow.Unauthenticated)
	w.refused(again("ann", "r1", w.id()), flow.Unauthenticated)
	w.refused(again("bob", "r1", ticket), flow.Unauthenticated)

	// One without a ticket has another proof, so it is another login.
	other := again("ann", "r1", domain.UUID{})
	w.must(other)
	if other.Made.ID != other.LoginSessionID || other.Made.Epoch != 2 {
		t.Errorf("a login with another proof got %+v", other.Made)
	}
	w.refused(again("ann", "r1", ticket), flow.SessionReplaced)
	w.must(&playerflow.Logout{Caller: playerflow.Caller{Player: "ann", LoginSessionID: other.LoginSessionID}})
	anew := again("ann", "r1", domain.UUID{})
	w.must(anew)
	if anew.Made.ID != anew.LoginSessionID {
		t.Errorf("the login session had ended, and is given again: %+v", anew.Made)
	}
	w.pass(11 * time.Minute)
	late := again("ann", "r1", domain.UUID{})
	w.must(late)
	if late.Made.ID != late.LoginSessionID {
		t.Error("after ten minutes the login is remembered still")
	}
}

// TestCallsOfOneKey: a collision of the short hashes of two calls reveals neither answer to the other caller.
func TestCallsOfOneKey(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("ann", "eve")
	ann := w.as("ann")
	ann.Request = "r"
	w.must(&playerflow.CreateParty{Caller: ann, ID: flow.PartyID(w.id())})
	x, ok := w.cell.playerflow.Flow.Request(playerflow.RequestKey(&ann))
	if !ok {
		t.Fatal("the call is not remembered")
	}
	rec := *x
	rec.Player = "eve" // as if eve had found a request id with ann's hash
	w.cell.playerflow.Flow.AddRequest(rec, w.now.Add(-playerflow.RequestsKept))
	tx := w.cell.playerflow
	tx.Tx.Now = w.now
	if _, ok := tx.Remembered(&ann); ok {
		t.Error("an answer of eve is given to ann")
	}
	rec.Player, rec.Proof = "ann", w.id()
	w.cell.playerflow.Flow.AddRequest(rec, w.now.Add(-playerflow.RequestsKept))
	if _, ok := tx.Remembered(&ann); ok {
		t.Error("an answer is given for another proof")
	}
	rec.Proof = domain.UUID{}
	w.cell.playerflow.Flow.AddRequest(rec, w.now.Add(-playerflow.RequestsKept))
}

// TestRefreshAgain: the repeat is told what the first token was made of, and apart from other calls with its request id.
func TestRefreshAgain(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("ann")
	by := w.as("ann")
	by.Request = "r"
	w.must(&playerflow.CreateParty{Caller: by, ID: flow.PartyID(w.id())})
	first := &playerflow.RefreshLogin{Caller: by, Token: w.id(), Nonce: w.id()}
	w.must(first)
	if first.Repeated || first.Made != first.Nonce || first.Login.Token != first.Token {
		t.Fatalf("the first: %+v", first)
	}
	repeat := &playerflow.RefreshLogin{Caller: by, Token: w.id(), Nonce: w.id()}
	w.must(repeat)
	if !repeat.Repeated || repeat.Made != first.Nonce || repeat.Login.Token != first.Token {
		t.Errorf("the repeat: %+v", repeat)
	}
	by.Request = "r2"
	next := &playerflow.RefreshLogin{Caller: by, Token: w.id(), Nonce: w.id()}
	w.must(next)
	if next.Repeated || next.Login.Token != next.Token {
		t.Errorf("another refresh: %+v", next)
	}
}

// TestSignedTokenOnce: a token that a backend has signed lets its player in once, also after a restart.
func TestSignedTokenOnce(t *testing.T) {
	w := newFlowWorld(t, nil)
	once, until := w.id(), w.now.Add(time.Minute)
	login := func(once domain.UUID, until domain.Time, request string) *playerflow.Login {
		return &playerflow.Login{Player: "ann", Once: once, Until: until, Request: request, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}
	}
	first := login(once, until, "r")
	w.must(first)
	w.refused(login(once, until, ""), flow.Unauthenticated)
	w.refused(login(once, until, "other"), flow.Unauthenticated)
	w.check() // restarts among others
	w.refused(login(once, until, ""), flow.Unauthenticated)
	repeat := login(once, until, "r")
	w.must(repeat)
	if repeat.Made.ID != first.LoginSessionID {
		t.Errorf("the repeat got %+v", repeat.Made)
	}
	w.refused(&playerflow.Login{Player: "ann", Ticket: once, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()}, flow.Unauthenticated)
	w.refused(login(w.id(), w.now, ""), flow.Unauthenticated)
	w.refused(login(w.id(), w.now.Add(playerflow.SignedTokenMax+time.Millisecond), ""), flow.Unauthenticated)
	w.pass(time.Minute)
	if w.cell.playerflow.Flow.Tickets.Len() != 0 {
		t.Error("a token that has expired is remembered")
	}
	w.refused(login(once, until, ""), flow.Unauthenticated)
}

// TestTicketsThatAreWorthATry: only a good ticket, or the repeat of the login that used it.
func TestTicketsThatAreWorthATry(t *testing.T) {
	w := newFlowWorld(t, nil)
	ticket := w.id()
	knows := func(player string, ticket domain.UUID, request string) bool {
		v := w.cell.View()
		return v.KnowsTicket(&playerflow.Login{Player: player, Ticket: ticket, Request: request}, w.now)
	}
	if knows("ann", ticket, "r") {
		t.Error("a ticket that was never issued")
	}
	w.must(&playerflow.IssueLoginTicket{Hash: ticket, Player: "ann", Life: time.Minute, Once: true})
	if !knows("ann", ticket, "") {
		t.Error("a good ticket is not known")
	}
	w.must(&playerflow.Login{Player: "ann", Ticket: ticket, Request: "r", LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()})
	if !knows("ann", ticket, "r") || knows("ann", ticket, "") || knows("ann", ticket, "r2") || knows("bob", ticket, "r") || knows("ann", w.id(), "r") {
		t.Error("a used ticket is known for something else than the repeat")
	}
}
