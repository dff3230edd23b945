package sim

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// recorded makes an administrator's changes, which the audit log records. Some change nothing, and some are refused. The world does not track them otherwise.
func recorded(w *Wishes, v *cell.View) kernel.Command {
	maker := []func(*Wishes, *cell.View) kernel.Command{createBuild, updateFleet, updateRuntime, setCapacity, putScalingPolicy, deleteScalingPolicy}[w.chance.IntN(6)]
	cmd := maker(w, v)
	if cmd == nil {
		return nil
	}
	return &audit.Given{Command: cmd, By: audit.Origin{Principal: "ops", Door: audit.DoorAPI, Operation: "change", Reason: []string{"", "an incident"}[w.chance.IntN(2)]}}
}

func noteRefusals(w *Wishes, _ *cell.View) kernel.Command {
	return &audit.NoteRefusals{Refusals: []audit.Refusal{{By: audit.Origin{Door: audit.DoorAPI, Operation: "sign-in"}, Refused: "missing", Count: w.number(), Last: w.now}}}
}

func noteExported(w *Wishes, v *cell.View) kernel.Command {
	return &audit.Exported{Receiver: []string{"syslog", "collector"}[w.chance.IntN(2)], No: v.AuditHead().No}
}

// checkAuditLog: the log has each entry once, in memory or in the archive, and is whole.
func (w *World) checkAuditLog(v *cell.View) {
	head := v.AuditHead()
	type stored struct {
		no   uint64
		data []byte
	}
	var all []stored
	for no := uint64(0); no <= head.No; no += audit.GroupSize {
		records, err := w.node.archive.List(background, archive.AuditEntry, archive.ByGroup, audit.ArchiveGroup(no), archive.Cursor{}, audit.GroupSize)
		if err != nil {
			return // a fault of the archive
		}
		for _, r := range records {
			all = append(all, stored{binary.BigEndian.Uint64([]byte(r.ID)), r.Data})
		}
	}
	for _, x := range v.AuditWaiting(1, head.No) {
		all = append(all, stored{x.Entry.No, x.Entry.Stored()})
	}
	slices.SortStableFunc(all, func(a, b stored) int { return cmp.Compare(a.no, b.no) })
	chain := audit.Chain{Now: domain.TimeOf(w.now)}
	for i, x := range all {
		if i == 0 || x.no != all[i-1].no {
			chain.Add(x.no, x.data)
		}
	}
	chain.End(head)
	for _, p := range chain.Problems {
		w.violated("the audit log: %s", p)
	}
}
