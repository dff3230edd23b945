package audit

import (
	"bytes"
	"cmp"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Level is the level that introduced the room's event. Below it, while nodes of an earlier release are in a cluster, changes are not recorded.
const Level = 2

// Given wraps a command whose caller is to be recorded. If the command is refused or changes nothing, there is no entry.
type Given struct {
	kernel.Command
	By Origin
	At domain.Time // 0: now; for a change while the service is down, it is later than the last transaction
}

// Unwrap returns the command itself.
func (g *Given) Unwrap() kernel.Command { return g.Command }

// Decide decides the command, and records what it has changed.
func (g *Given) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	k.Cmd = g.Command
	if k.Level() < Level {
		return g.Command.Decide(k)
	}
	_, _, record := t.hooks.Describe(g.Command)
	before := factsOf(record)
	start := k.Bytes()
	if err := g.Command.Decide(k); err != nil {
		return err
	}
	if k.Bytes() == start {
		return nil
	}
	kind, id, record := t.hooks.Describe(g.Command)
	after := factsOf(record)
	if before == nil && after == nil {
		after = factsOf(kernel.Unwrapped(g.Command))
	}
	t.record(Entry{At: g.At, By: g.By.Cut(), Kind: kind, ID: short(id, textMax), Changes: differ(before, after)})
	return nil
}

// record appends an entry to the log. No entry expires before the previous one, so the log is always complete from its oldest entry on.
func (t *Tx) record(e Entry) {
	e.No, e.At, e.Previous, e.PreviousUntil = t.head.No+1, cmp.Or(e.At, t.Now), bytes.Clone(t.head.Hash), t.head.Until
	e.Until = max(e.At.Add(max(t.config.Kept, KeptMin)), t.head.Until)
	t.Emit(&AuditRecorded{e})
}

// Note records an operation that changes something outside the state, or that only reads but still matters, such as a backup. The caller issues it
// after the operation.
type Note struct {
	By       Origin
	Kind, ID string
	Changes  []Change
}

// Decide emits AuditRecorded.
func (cmd *Note) Decide(k *kernel.Tx) error {
	if k.Level() < Level {
		return nil
	}
	e := Entry{By: cmd.By.Cut(), Kind: short(cmd.Kind, textMax), ID: short(cmd.ID, textMax)}
	for _, x := range cmd.Changes[:min(len(cmd.Changes), changesMax)] {
		e.Changes = append(e.Changes, x.cut())
	}
	kernel.Of[*Tx](k).record(e)
	return nil
}

// Refusal is a group of attempts refused for the same reason.
type Refusal struct {
	By      Origin
	Refused string
	Count   uint64
	First   domain.Time
	Last    domain.Time
}

// NoteRefusals records refused attempts. The caller limits how often.
type NoteRefusals struct{ Refusals []Refusal }

// Decide emits AuditRecorded for each of them.
func (cmd *NoteRefusals) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if len(cmd.Refusals) > refusalsMax {
		return domain.Refuse(domain.Invalid, "%d groups of refused attempts: want at most %d", len(cmd.Refusals), refusalsMax)
	}
	if k.Level() < Level {
		return nil
	}
	for _, r := range cmd.Refusals {
		e := Entry{By: r.By.Cut(), Refused: short(r.Refused, refusedMax)}
		if r.Count > 1 {
			e.Count, e.Last = r.Count, min(r.Last, t.Now)
		}
		t.record(e)
	}
	return nil
}

// Exported records that a receiver outside the service has all entries up to No. A number below the recorded one changes nothing.
type Exported struct {
	Receiver string
	No       uint64
}

// Decide emits AuditExported.
func (cmd *Exported) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	switch {
	case cmd.Receiver == "" || len(cmd.Receiver) > ReceiverMax:
		return domain.Refuse(domain.Invalid, "receiver %.40q: want 1 to %d bytes", cmd.Receiver, ReceiverMax)
	case cmd.No > t.head.No:
		return domain.Refuse(domain.Invalid, "entry %d: the audit log ends with %d", cmd.No, t.head.No)
	case cmd.No > t.head.Exported(cmd.Receiver): // entries exist, so the level in force has the event
		t.Emit(&AuditExported{cmd.Receiver, cmd.No})
	}
	return nil
}
