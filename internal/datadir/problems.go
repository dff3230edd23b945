package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/identity"
)

// Part is a part of a data directory that can be lost, by its name on the command line.
type Part string

// The parts.
const (
	Journal     Part = "journal"      // with its snapshots: the state, access keys included
	JournalTail Part = "journal-tail" // the journal's last entries
	Archive     Part = "archive"
	Secret      Part = "cell.secret"
)

const (
	journalDir = "journal"
	archiveDir = "archive"
)

// wholeParts are in the order of precedence if they disagree.
var wholeParts = []Part{Journal, Secret, Archive}

// consequences describes what the loss of a part means.
var consequences = map[Part]string{
	Journal:     "sets the journal aside and begins with an empty state: fleets, live sessions, players and access keys are gone, ended sessions stay",
	JournalTail: "continues with the rest of the journal, as if the events of the missing entries had not happened",
	Archive:     "continues without the ended sessions, placements and tickets that are missing",
	Secret:      "makes a new secret: all access keys and tokens become invalid, and you must issue new ones",
}

// ParsePart reads the name of a part.
func ParsePart(name string) (Part, error) {
	if _, ok := consequences[Part(name)]; ok {
		return Part(name), nil
	}
	return "", fmt.Errorf("part %.100q of the data directory is unknown: want %s, %s, %s or %s", name, Journal, JournalTail, Archive, Secret)
}

// Problem describes why a data directory cannot be opened, and how to continue.
type Problem struct {
	Part Part
	Path string
	What string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s %s. Restore the data directory, or this part of it, from a backup. If there is none: `muster serve --accept-loss %s` %s",
		p.Path, p.What, p.Part, consequences[p.Part])
}

func (d *Dir) problem(name Part, what string) *Problem {
	path := d.path(string(name))
	if name == JournalTail {
		path = d.path(journalDir)
	}
	return &Problem{Part: name, Path: path, What: what}
}

// judge finds the parts that are missing or belong to another installation.
func (d *Dir) judge() error {
	if d.pending == nil && !d.parts[Journal].there && !d.parts[Archive].there && !d.parts[Secret].there {
		// Keys without their secret are a backup that was restored in part.
		if err := identity.CheckNoKeyFiles(d.options.Dir); err != nil {
			return err
		}
		return d.begin()
	}
	if d.pending == nil && d.installation() == uuid.Nil {
		if err := d.judgeUnnamed(); err != nil {
			return err
		}
	}
	want := d.installation()
	for _, name := range wholeParts {
		p := d.parts[name]
		switch {
		case p.problem != nil:
		case !p.there && d.mustHave(name):
			p.problem = d.problem(name, "is missing, but the other parts of the data directory exist")
		case !p.there:
		case p.id != uuid.Nil && p.id != want:
			p.problem = d.problem(name, fmt.Sprintf("belongs to the installation %s, but the other parts of the data directory belong to %s", p.id, want))
		case p.id == uuid.Nil && want != uuid.Nil && d.pending == nil && name != Secret: // CheckState checks whether the secret is the right one
			p.problem = d.problem(name, fmt.Sprintf("was written by an earlier release or belongs elsewhere; the other parts of the data directory belong to the installation %s", want))
		}
	}
	return d.judgeTail()
}

// judgeUnnamed checks a directory of an earlier release, which had no ids. It created the journal first.
func (d *Dir) judgeUnnamed() error {
	last := uint64(0)
	if d.Journal != nil {
		var err error
		if last, err = d.Journal.Last(background); err != nil {
			return err
		}
	}
	keyFile, err := identity.HasKeyFile(d.options.Dir) // even earlier ones made it without a journal
	if err != nil {
		return err
	}
	if p := d.parts[Journal]; !p.there && (d.parts[Archive].there || !keyFile) {
		p.problem = d.problem(Journal, "is missing, but the other parts of the data directory exist")
	}
	if p := d.parts[Secret]; !p.there && p.problem == nil && last > 0 {
		p.problem = d.problem(Secret, "is missing, but the other parts of the data directory exist")
	}
	for _, name := range wholeParts {
		if d.parts[name].problem != nil {
			return nil
		}
	}
	d.log.Info("the data directory comes from an earlier release: its parts get an installation id", "directory", d.options.Dir)
	return d.begin()
}

// begin chooses an id for the directory, which is then written to one part after another.
func (d *Dir) begin() error {
	d.pending = &pending{Format: pendingFormat, ID: uuid.New()}
	return d.savePending()
}

func (d *Dir) savePending() error {
	d.pending.Had, d.pending.Accepted = nil, d.losses
	for _, name := range wholeParts {
		if d.parts[name].there {
			d.pending.Had = append(d.pending.Had, name)
		}
	}
	return d.pending.write(d.options.Dir)
}

// mustHave reports whether a part existed before.
func (d *Dir) mustHave(name Part) bool {
	return d.pending == nil || slices.Contains(d.pending.Had, name)
}

// installation returns the id that most parts have; zero if none has one.
func (d *Dir) installation() (id uuid.UUID) {
	if d.pending != nil {
		return d.pending.ID
	}
	votes, most := map[uuid.UUID]int{}, 0
	for _, p := range d.parts {
		votes[p.id]++
	}
	for _, name := range wholeParts {
		if p := d.parts[name]; p.id != uuid.Nil && votes[p.id] > most {
			id, most = p.id, votes[p.id]
		}
	}
	return id
}

// judgeTail compares the end of the journal with the mark in the archive.
func (d *Dir) judgeTail() error {
	if d.Journal == nil || d.Archive == nil || d.parts[Journal].problem != nil || d.parts[Archive].problem != nil {
		return nil
	}
	last, err := d.Journal.Last(background)
	if err != nil {
		return err
	}
	mark, ok, err := d.Archive.Mark()
	if err != nil || !ok || mark.Journal <= last {
		return err
	}
	d.parts[JournalTail] = &part{problem: d.problem(JournalTail, fmt.Sprintf(
		"ends with entry %d, but had %d entries when the archive was last written: the last %d are missing", last, mark.Journal, mark.Journal-last))}
	return nil
}

// accept renames parts whose loss the operator accepts, and returns the remaining problems.
func (d *Dir) accept() error {
	var left []error
	var gone []*Problem
	for _, name := range slices.Concat(wholeParts, []Part{JournalTail}) {
		switch p := d.parts[name]; {
		case p == nil || p.problem == nil:
		case slices.Contains(d.options.Accept, p.problem.Part):
			gone = append(gone, p.problem)
		default:
			left = append(left, p.problem)
		}
	}
	if len(left) > 0 {
		return errors.Join(left...)
	}
	for _, p := range gone {
		d.lose(p)
		if p.Part != JournalTail {
			if err := d.setAside(p.Part); err != nil {
				return err
			}
		}
	}
	if len(d.losses) == 0 {
		return nil
	}
	if d.pending == nil {
		id := d.installation()
		if id == uuid.Nil {
			id = uuid.New()
		}
		d.pending = &pending{Format: pendingFormat, ID: id}
	}
	return d.savePending()
}

// acceptInPlace is accept for parts that are usable as they are.
func (d *Dir) acceptInPlace(problems []*Problem) error {
	var left []error
	for _, p := range problems {
		if !slices.Contains(d.options.Accept, p.Part) {
			left = append(left, p)
			continue
		}
		d.lose(p)
		if d.pending == nil {
			d.pending = &pending{ID: d.installation()}
		}
	}
	if len(left) > 0 || len(problems) == 0 {
		return errors.Join(left...)
	}
	d.pending.Format = pendingFormat
	return d.savePending()
}

func (d *Dir) lose(p *Problem) {
	d.log.Warn("a loss in the data directory was accepted", "part", string(p.Part), "path", p.Path, "detail", p.What)
	d.losses = append(d.losses, loss{p.Part, p.What})
}

func (d *Dir) isLost(name Part) bool {
	return slices.ContainsFunc(d.losses, func(l loss) bool { return l.Part == name })
}

// setAside renames a part instead of deleting it, because the part may be worth an investigation or another restore.
func (d *Dir) setAside(name Part) error {
	p := d.parts[name]
	switch name {
	case Journal:
		if d.Journal != nil {
			if err := d.Journal.Close(); err != nil {
				return err
			}
			d.Journal = nil
		}
	case Archive:
		if d.Archive != nil {
			if err := d.Archive.Close(); err != nil {
				return err
			}
			d.Archive = nil
		}
	}
	p.there, p.id, p.problem = false, uuid.Nil, nil
	from := d.path(string(name))
	if _, err := os.Lstat(from); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	to := from + ".lost-" + strings.ReplaceAll(time.Now().UTC().Format("20060102T150405.000000Z"), ".", "")
	if err := atomicfile.Rename(from, to); err != nil {
		return fmt.Errorf("set %s aside: %w", from, err)
	}
	d.log.Warn("a lost part of the data directory was renamed, not deleted", "part", string(name), "from", from, "to", filepath.Base(to))
	return nil
}
