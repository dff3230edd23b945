package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Subscription is a backend of the studio that wants to hear what players are told. It is told of what happens behind the
// subscription, from the list of StudioEvents, until it has said that it has it.
type Subscription struct {
	ID      SubscriptionID
	URL     string   // of a webhook; empty: it comes by a stream
	Types   []string // of MessageType; none: all
	Players []string // sorted; none: all
	By      string   // who made it
	Created domain.Time
	Done    uint64 // number of the latest event that the receiver has
	// TakeBy is when the subscription lapses unless its receiver takes something; 0: nothing waits for it.
	TakeBy  domain.ContactTime
	Lapsed  domain.Time // since when nothing is kept for it any more; 0: it goes on
	Lost    uint64      // events that were not kept while it had lapsed, which the receiver is still to be told of
	Changed uint64
}

func (s *Subscription) Fields(c *wire.Codec) {
	wire.ID(c, 1, &s.ID)
	c.String(2, &s.URL)
	c.Strings(3, &s.Types)
	c.Strings(4, &s.Players)
	c.String(5, &s.By)
	wire.Int(c, 6, &s.Created)
	wire.Int(c, 7, &s.Done)
	wire.Int(c, 8, &s.TakeBy)
	wire.Int(c, 9, &s.Lapsed)
	wire.Int(c, 10, &s.Lost)
}

// Wants reports whether an event of a type is for the subscription, given the players it is for. OnAllowedActionsChanged is
// for those who name it: it is for buttons of clients, and follows from what others say.
func (s *Subscription) Wants(kind MessageType, to []Hearer) bool {
	if s.Lapsed != 0 {
		return false
	}
	if named := slices.Contains(s.Types, kind.String()); !named && (len(s.Types) > 0 || kind == OnAllowedActionsChanged) {
		return false
	}
	return len(s.Players) == 0 || slices.ContainsFunc(to, func(h Hearer) bool {
		_, named := slices.BinarySearch(s.Players, h.Player)
		return named
	})
}

// StudioEvent is one event as the studio hears it: once, for all players who were told.
type StudioEvent struct {
	No     uint64
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not note it
	Type   MessageType
	Body   string // a Message; the same string as in the outboxes
	To     []Hearer
}

// Hearer is a player whom an event is for, and its number for this player; 0: only the studio was told.
type Hearer struct {
	Player string
	Seq    uint64
}

func (e *StudioEvent) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.No)
	wire.Int(c, 2, &e.At)
	wire.Int(c, 3, &e.Commit)
	wire.Int(c, 4, &e.Type)
	c.String(5, &e.Body)
	wire.Many(c, 6, &e.To, (*Hearer).fields)
	wire.Int(c, 7, &e.Part)
}

func (h *Hearer) fields(c *wire.Codec) {
	c.String(1, &h.Player)
	wire.Int(c, 2, &h.Seq)
}

// Studio has the studio's subscriptions, and the events that wait for their receivers. Without a subscription nothing is
// kept. The list only grows at its end and is cut at its front, so that frozen copies may share it.
type Studio struct {
	subscriptions []Subscription // oldest first
	events        []StudioEvent  // their numbers have no gap
	head          uint64         // number of the latest event that was ever written
	bytes         int
	latest        map[SubscriptionID]uint64 // by subscription: number of the latest event that it wants; of the live state only
}

// Bounds of what is kept for receivers that do not take it; then the oldest are given up.
const (
	StudioEventsMax = 100_000
	StudioBytesMax  = 64 << 20
)

// Subscriptions are all of them, oldest first.
func (s *Studio) Subscriptions() []Subscription { return s.subscriptions }

// Head is the number of the latest event.
func (s *Studio) Head() uint64 { return s.head }

// Kept is the number of events that are kept.
func (s *Studio) Kept() int { return len(s.events) }

// FirstKept is the number of the oldest event that is kept; Head+1 when none is.
func (s *Studio) FirstKept() uint64 { return s.head - uint64(len(s.events)) + 1 }

// Wanted reports whether a subscription wants an event, and whether it is the first that waits for one of them.
func (s *Studio) Wanted(kind MessageType, to []Hearer) (wanted, first bool) {
	for i := range s.subscriptions {
		if x := &s.subscriptions[i]; x.Wants(kind, to) {
			wanted, first = true, first || x.TakeBy == 0
		}
	}
	return wanted, first
}

// Listens reports whether there is a subscription that has not lapsed.
func (s *Studio) Listens() bool {
	return slices.ContainsFunc(s.subscriptions, func(x Subscription) bool { return x.Lapsed == 0 })
}

// Waits reports whether a subscription wants an event behind a number.
func (s *Studio) Waits(id SubscriptionID, no uint64) bool { return s.latest[id] > no }

// KeptWith is the number of the oldest event that can be kept when one of a size is added.
func (s *Studio) KeptWith(size int) uint64 {
	first, bytes, n := s.FirstKept(), s.bytes+size, len(s.events)+1
	for i := 0; i < len(s.events) && (n > StudioEventsMax || bytes > StudioBytesMax); i++ {
		bytes -= s.events[i].size()
		n--
		first++
	}
	return first
}

// size is what one event holds, roughly.
func (e *StudioEvent) size() int { return StudioEventSize(e.Body, len(e.To)) }

// StudioEventSize is what an event holds, roughly.
func StudioEventSize(body string, to int) int { return 80 + len(body) + 40*to }

// Write appends an event; those before number first are given up. Receivers for whom nothing else waits have until takeBy.
func (s *Studio) Write(e StudioEvent, first uint64, takeBy domain.ContactTime) {
	s.head = e.No
	s.noteWanted(&e)
	if takeBy != 0 {
		s.subscriptions = slices.Clone(s.subscriptions)
		for i := range s.subscriptions {
			if x := &s.subscriptions[i]; x.TakeBy == 0 && x.Wants(e.Type, e.To) {
				x.TakeBy = takeBy
			}
		}
	}
	s.events = append(s.events, e)
	s.bytes += e.size()
	s.trim(first)
}

func (s *Studio) noteWanted(e *StudioEvent) {
	if s.latest == nil {
		s.latest = map[SubscriptionID]uint64{}
	}
	for i := range s.subscriptions {
		if x := &s.subscriptions[i]; x.Wants(e.Type, e.To) {
			s.latest[x.ID] = e.No
		}
	}
}

func (s *Studio) trim(first uint64) {
	from := s.FirstKept()
	if first <= from {
		return
	}
	n := int(min(first-from, uint64(len(s.events))))
	for i := range s.events[:n] {
		s.bytes -= s.events[i].size()
	}
	if s.events = s.events[n:]; len(s.events) == 0 {
		s.events = nil
	} else if n > len(s.events) { // what lies before them is not kept for few
		s.events = slices.Clone(s.events)
	}
}

// Find finds a subscription.
func (s *Studio) Find(id SubscriptionID) (Subscription, bool) {
	i := s.index(id)
	if i < 0 {
		return Subscription{}, false
	}
	return s.subscriptions[i], true
}

func (s *Studio) index(id SubscriptionID) int {
	return slices.IndexFunc(s.subscriptions, func(x Subscription) bool { return x.ID == id })
}

// Put stores a subscription, or replaces it.
func (s *Studio) Put(x Subscription) {
	all := slices.Clone(s.subscriptions)
	if i := s.index(x.ID); i >= 0 {
		all[i] = x
	} else {
		all = append(all, x)
	}
	s.subscriptions = all
	s.forgetTaken()
}

// Remove drops a subscription.
func (s *Studio) Remove(id SubscriptionID) {
	delete(s.latest, id)
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(x Subscription) bool { return x.ID == id })
	s.forgetTaken()
}

// forgetTaken drops the events that all receivers have.
func (s *Studio) forgetTaken() {
	done := s.head
	for _, x := range s.subscriptions {
		if x.Lapsed == 0 {
			done = min(done, x.Done)
		}
	}
	s.trim(done + 1)
}

// After are the events behind a number, oldest first. The slice must not be changed.
func (s *Studio) After(no uint64) []StudioEvent {
	first := s.FirstKept()
	if no >= s.head {
		return nil
	}
	return s.events[max(no+1, first)-first:]
}

// Restore puts back what a snapshot holds, oldest first.
func (s *Studio) Restore(head uint64, subscription *Subscription, event *StudioEvent) {
	s.head = max(s.head, head)
	if subscription != nil {
		s.subscriptions = append(s.subscriptions, *subscription)
	}
	if event != nil {
		s.noteWanted(event)
		s.events = append(s.events, *event)
		s.bytes += event.size()
	}
}

// KnownMessage reports whether there is a message type of a name.
func KnownMessage(name string) bool { return name != "" && slices.Contains(messageTypes[:], name) }
