package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Subscription is a backend of the studio that receives players' events. It receives the StudioEvents written after it subscribed,
// repeatedly until it has acknowledged them.
type Subscription struct {
	ID      SubscriptionID
	URL     string   // of a webhook; empty: the receiver connects by a stream
	Types   []string // of MessageType; none: all
	Players []string // sorted; none: all
	By      string   // the principal that created it
	Holder  quota.Holder
	Created domain.Time
	Done    uint64 // number of the latest event that the receiver has acknowledged
	// TakeBy is when the subscription lapses unless its receiver takes an event; 0: no event waits for it.
	TakeBy  domain.ContactTime
	Lapsed  domain.Time // when it lapsed, after which no events are kept for it; 0: it has not
	Lost    uint64      // events dropped while it had lapsed, of which the receiver has not been told yet
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
	c.Fixed64(11, (*uint64)(&s.Holder))
}

// Wants reports whether the subscription gets an event of a type for these players. It gets OnAllowedActionsChanged only if it names
// that type: the event serves clients' buttons and follows from other events.
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

// StudioEvent is an event as the studio gets it: once for all players who got it.
type StudioEvent struct {
	No     uint64
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not record it
	Type   MessageType
	Body   string // a Message; the same string as in the outboxes
	To     []Hearer
}

// Hearer is a player whom an event concerns, with the event's number for this player; 0: only the studio got it.
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

// Studio has the studio's subscriptions and the events that wait for their receivers. Without a subscription it keeps no events. The
// list only grows at its end and is trimmed at its front, so that frozen copies can share it.
type Studio struct {
	subscriptions []Subscription // oldest first
	events        []StudioEvent  // their numbers have no gap
	head          uint64         // number of the latest event that was ever written
	bytes         int
	latest        map[SubscriptionID]uint64 // by subscription: number of the latest event that it wants; not in snapshots
}

// Bounds of the events kept for receivers that do not take them; beyond them, the oldest are dropped.
const (
	StudioEventsMax = 100_000
	StudioBytesMax  = 64 << 20
)

// Subscriptions returns all subscriptions, oldest first.
func (s *Studio) Subscriptions() []Subscription { return s.subscriptions }

// Held counts the subscriptions by their holders. Lapsed ones do not count, because they make room for others.
func (s *Studio) Held() *quota.Held {
	var held quota.Held
	for i := range s.subscriptions {
		if x := &s.subscriptions[i]; x.Lapsed == 0 {
			held.Add(x.Holder, 0)
		}
	}
	return &held
}

// Head returns the number of the latest event.
func (s *Studio) Head() uint64 { return s.head }

// Kept counts the events that are kept.
func (s *Studio) Kept() int { return len(s.events) }

// FirstKept returns the number of the oldest event that is kept; Head+1 when none is.
func (s *Studio) FirstKept() uint64 { return s.head - uint64(len(s.events)) + 1 }

// Wanted reports whether any subscription wants an event, and whether it is the first event to wait for one of their receivers.
func (s *Studio) Wanted(kind MessageType, to []Hearer) (wanted, first bool) {
	for i := range s.subscriptions {
		if x := &s.subscriptions[i]; x.Wants(kind, to) {
			wanted, first = true, first || x.TakeBy == 0
		}
	}
	return wanted, first
}

// Listens reports whether any subscription has not lapsed.
func (s *Studio) Listens() bool {
	return slices.ContainsFunc(s.subscriptions, func(x Subscription) bool { return x.Lapsed == 0 })
}

// Waits reports whether a subscription wants an event with a number above no.
func (s *Studio) Waits(id SubscriptionID, no uint64) bool { return s.latest[id] > no }

// KeptWith returns the number of the oldest event that can be kept after an event of this size is added.
func (s *Studio) KeptWith(size int) uint64 {
	first, bytes, n := s.FirstKept(), s.bytes+size, len(s.events)+1
	for i := 0; i < len(s.events) && (n > StudioEventsMax || bytes > StudioBytesMax); i++ {
		bytes -= s.events[i].size()
		n--
		first++
	}
	return first
}

// size estimates the memory of an event.
func (e *StudioEvent) size() int { return StudioEventSize(e.Body, len(e.To)) }

// StudioEventSize estimates the memory of an event.
func StudioEventSize(body string, to int) int { return 80 + len(body) + 40*to }

// Write appends an event and drops those before number first. Receivers that have no other waiting event must take it by takeBy.
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
	} else if n > len(s.events) { // do not keep a large array for few events
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

// forgetTaken drops the events that all receivers have acknowledged.
func (s *Studio) forgetTaken() {
	done := s.head
	for _, x := range s.subscriptions {
		if x.Lapsed == 0 {
			done = min(done, x.Done)
		}
	}
	s.trim(done + 1)
}

// After returns the events with numbers above no, oldest first. The slice must not be changed.
func (s *Studio) After(no uint64) []StudioEvent {
	first := s.FirstKept()
	if no >= s.head {
		return nil
	}
	return s.events[max(no+1, first)-first:]
}

// Restore restores the events of a snapshot, oldest first.
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

// KnownMessage reports whether a message type has this name.
func KnownMessage(name string) bool { return name != "" && slices.Contains(messageTypes[:], name) }
