package playerflow

import "github.com/musterhq/muster/internal/domain/flow"

type telling struct {
	kind flow.MessageType
	body string
	to   []string

	studio bool // for the studio alone
}

// tellPlayers queues an event for players; Settle writes it to their outboxes.
func (t *transaction) tellPlayers(kind flow.MessageType, m flow.Message, to ...string) {
	if len(to) == 0 {
		return
	}
	t.own().told = append(t.own().told, telling{kind: kind, body: m.Encode(), to: to})
}

// outboxBytesMax bounds the size of one player's outbox, whatever it contains.
const outboxBytesMax = 512 << 10

// write puts one event into the outboxes of players.
func (t *transaction) write(kind flow.MessageType, body string, to []string) {
	keep := &t.Config.Sessions
	e := &PlayersTold{Type: kind, Body: body, To: make([]Addressee, 0, len(to))}
	for _, id := range to {
		r, ok := t.Flow.Player(id)
		if !ok {
			continue
		}
		p := t.Flow.Players.Get(r)
		events, first, size := p.Outbox(), p.FirstKept(), p.OutboxBytes()+len(body)
		for len(events) > 0 {
			n := len(events) + 1
			old := n > keep.EventsKept && events[0].At.Add(keep.EventsKeptFor) <= t.Now
			if !old && n <= flow.EventsLimit && size <= outboxBytesMax {
				break
			}
			size -= len(events[0].Body)
			events = events[1:]
			first++
		}
		e.To = append(e.To, Addressee{id, p.Seq + 1, first})
	}
	if len(e.To) > 0 {
		t.tellStudio(e)
		t.Emit(e)
	}
}
