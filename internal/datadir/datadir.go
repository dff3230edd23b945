// Package datadir opens a data directory as a whole: the journal with its snapshots, the archive, and the cell's secret.
// They belong together. Each part carries the id of its installation, and a part that is missing, damaged, older than the others
// or of another installation stops the start: without it the service would answer as if its content had never existed. The
// operator restores the part, or accepts its loss by name. docs/formats/data-directory.md describes the files.
package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	"github.com/musterhq/muster/internal/secretkey"
)

// Options define which directory to open, and how.
type Options struct {
	Dir     string
	Program string       // names this process in the error of a second process that finds the directory in use, such as "muster serve"
	Log     *slog.Logger // nil: nothing is logged
	Accept  []Part       // parts whose loss is accepted

	Key *secretkey.Key // encrypts the secrets; nil: they are not encrypted

	JournalTables, ArchiveTables int // maximum number of open table files, each a descriptor; 0: the stores' defaults
}

// Dir is an open data directory. No other process can open it until Close.
type Dir struct {
	Journal *journalpebble.Journal
	Archive *archivepebble.Archive
	Secret  identity.CellSecret

	options   Options
	log       *slog.Logger
	parts     map[Part]*part
	pending   *pending // nil: the directory is complete
	losses    []loss
	forgotten uint64 // of the state that was passed to CheckState
}

// part is the condition in which a part was found.
type part struct {
	there   bool
	id      uuid.UUID // id of its installation; zero: the part has none
	problem *Problem  // nil: the part is usable
}

// loss is a loss that the operator has accepted.
type loss struct {
	Part Part   `json:"part"`
	What string `json:"what"`
}

// Open opens a data directory, or creates it. While another process has it open, the error is an *embeddb.InUse; for unusable parts, the error
// contains one or more *Problem. The caller must then load the state, pass it to CheckState, record the losses, and call Commit.
func Open(o Options) (*Dir, error) {
	if err := atomicfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	unlock, err := identity.LockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := checkSingle(o.Dir); err != nil {
		return nil, err
	}
	if err := checkKey(o); err != nil {
		return nil, err
	}
	return openLocked(o)
}

// openLocked opens a data directory that is locked.
func openLocked(o Options) (_ *Dir, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	d := &Dir{options: o, log: o.Log, parts: map[Part]*part{Journal: {}, Archive: {}, Secret: {}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.pending, err = readPending(o.Dir); err != nil {
		return nil, err
	}
	if d.pending != nil {
		d.losses = slices.Clone(d.pending.Accepted)
	}
	for _, open := range []func() error{d.openJournal, d.openSecret, d.openArchive} {
		if err := open(); err != nil {
			return nil, err
		}
	}
	if err := d.judge(); err != nil {
		return nil, err
	}
	if err := d.accept(); err != nil {
		return nil, err
	}
	if err := d.makeMissing(); err != nil {
		return nil, err
	}
	d.Secret = d.Secret.Kept(o.Dir, o.Key)
	return d, nil
}

func (d *Dir) path(name string) string { return filepath.Join(d.options.Dir, name) }

func (d *Dir) openJournal() error {
	p := d.parts[Journal]
	var err error
	if p.there, err = journalpebble.Exists(d.path(journalDir)); err != nil || !p.there {
		return err
	}
	o := d.journalOptions()
	d.Journal, err = journalpebble.Open(o)
	damaged, ok := errors.AsType[*journal.Damaged](err)
	switch {
	case ok && damaged.Tail:
		lost := d.problem(JournalTail, "has lost its end: "+damaged.Error())
		if !slices.Contains(d.options.Accept, JournalTail) {
			p.problem = lost
			return nil
		}
		o.AcceptLostTail = true
		if d.Journal, err = journalpebble.Open(o); err != nil {
			return err
		}
		d.lose(lost)
	case ok:
		p.problem = d.problem(Journal, "is damaged: "+damaged.Error())
		return nil
	case err != nil:
		return err
	}
	p.id = d.Journal.Installation()
	if slices.Contains(d.options.Accept, Journal) { // only in this case is the whole journal read twice
		if err := readThrough(d.Journal); err != nil {
			damaged, ok := errors.AsType[*journal.Damaged](err)
			if !ok {
				return err
			}
			p.problem = d.problem(Journal, "is damaged: "+damaged.Error())
		}
	}
	return nil
}

// readThrough reads the latest snapshot and all entries.
func readThrough(j journal.Journal) error {
	_, snapshot, err := j.LatestSnapshot(background)
	if err == nil && snapshot != nil {
		_, err = io.Copy(io.Discard, snapshot)
		err = errors.Join(err, snapshot.Close())
	}
	if err != nil {
		return err
	}
	for _, err := range j.Read(background, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Explain adds to an error of loading the state how to continue, if the cause is damage of the journal.
func (d *Dir) Explain(err error) error {
	if damaged, ok := errors.AsType[*journal.Damaged](err); ok {
		return d.problem(Journal, "is damaged: "+damaged.Error())
	}
	return err
}

func (d *Dir) journalOptions() journalpebble.Options {
	return journalpebble.Options{Dir: d.path(journalDir), Logger: d.log, Program: d.options.Program, TableFiles: d.options.JournalTables}
}

func (d *Dir) openArchive() error {
	p := d.parts[Archive]
	var err error
	if interrupted, err := archivepebble.Interrupted(d.path(archiveDir)); err != nil {
		return err
	} else if interrupted {
		return fmt.Errorf("%s is missing because its repair was interrupted: run `muster archive repair` again, which completes it", d.path(archiveDir))
	}
	if p.there, err = archivepebble.Exists(d.path(archiveDir)); err != nil || !p.there {
		return err
	}
	if d.Archive, err = archivepebble.Open(d.archiveOptions()); err != nil {
		if damaged, ok := errors.AsType[*archive.Damaged](err); ok {
			p.problem = d.problem(Archive, "is damaged: "+damaged.Error())
			return nil
		}
		return err
	}
	p.id = d.Archive.Installation()
	return nil
}

func (d *Dir) archiveOptions() archivepebble.Options {
	return archivepebble.Options{Dir: d.path(archiveDir), Logger: d.log, Program: d.options.Program, TableFiles: d.options.ArchiveTables}
}

func (d *Dir) openSecret() error {
	p := d.parts[Secret]
	secret, id, err := identity.ReadSecretFile(d.options.Dir, d.options.Key)
	if damaged, ok := errors.AsType[*identity.DamagedSecret](err); ok {
		p.there, p.problem = true, d.problem(Secret, damaged.Reason)
		return nil
	}
	if wrong, ok := errors.AsType[*secretkey.Wrong](err); ok && slices.Contains(d.options.Accept, Secret) {
		p.there, p.problem = true, d.problem(Secret, "is encrypted with the secret key "+wrong.Sealed+", which is lost")
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p.there, p.id, d.Secret = true, id, secret
	return err
}

// makeMissing creates the missing parts: all of a new directory, or those whose loss was accepted.
func (d *Dir) makeMissing() (err error) {
	if d.Journal == nil {
		if d.Journal, err = journalpebble.Open(d.journalOptions()); err != nil {
			return err
		}
		if err := d.Journal.SetInstallation(d.pending.ID); err != nil {
			return err
		}
	}
	if d.Archive == nil {
		if d.Archive, err = archivepebble.Open(d.archiveOptions()); err != nil {
			return err
		}
		if err := d.Archive.SetInstallation(d.pending.ID, archive.Mark{}); err != nil {
			return err
		}
	}
	if p := d.parts[Secret]; !p.there {
		d.Secret, p.id = identity.NewCellSecret(), d.pending.ID
		if err := d.Secret.Write(d.options.Dir, p.id, d.options.Key); err != nil {
			return err
		}
	}
	return nil
}

// CheckState compares the state with the other parts, before anything is appended to it.
func (d *Dir) CheckState(v *cell.View) error {
	var problems []*Problem
	switch missing, fits := d.Secret.Fits(v.SecretStandings()); {
	case d.isLost(Secret):
	case !fits:
		problems = append(problems, d.problem(Secret, "is not the secret that the access keys of this data directory are derived from"))
	case len(missing) > 0:
		problems = append(problems, d.problem(Secret, fmt.Sprintf("is older than the journal: it does not have generation %d of the secret, which the installation uses", missing[0])))
	}
	d.forgotten = v.Forgotten()
	mark, ok, err := d.Archive.Mark()
	if err != nil {
		return err
	}
	if ok && mark.Forgotten < d.forgotten && !d.isLost(Archive) {
		what := fmt.Sprintf("is older than the journal: when it was last written, it had received %d of the %d ended sessions, placements and tickets that have left memory", mark.Forgotten, d.forgotten)
		if mark == (archive.Mark{}) {
			what = fmt.Sprintf("is missing, and with it the %d ended sessions, placements and tickets that were moved to it from memory", d.forgotten)
		}
		problems = append(problems, d.problem(Archive, what))
	}
	if err := d.acceptInPlace(problems); err != nil {
		return err
	}
	if d.isLost(Secret) { // also a secret that is already new but that a crash has kept from being recorded
		return d.Secret.Generations().Reset()
	}
	return nil
}

// Record writes the accepted losses to the journal. do carries out a command and returns once it is durable.
func (d *Dir) Record(ctx context.Context, do func(context.Context, kernel.Command) error) error {
	for _, l := range d.losses {
		d.log.Warn("an accepted loss is recorded in the journal", "part", string(l.Part), "detail", l.What)
		cmd := &access.AcceptLoss{Part: string(l.Part), What: l.What}
		if l.Part == Secret {
			cmd.Secret = d.Secret.Check()
		}
		if err := do(ctx, cmd); err != nil {
			return fmt.Errorf("record the accepted loss of %s: %w", l.Part, err)
		}
	}
	return nil
}

// Lost returns the parts whose loss the operator has accepted.
func (d *Dir) Lost() (parts []Part) {
	for _, l := range d.losses {
		parts = append(parts, l.Part)
	}
	return parts
}

// Commit makes the directory complete: from then on, every part must exist. Before Commit, another Open continues where this one stopped. Commit also
// encrypts secrets that are not yet encrypted.
func (d *Dir) Commit(ctx context.Context) error {
	if p := d.parts[Secret]; d.pending == nil && p.id == uuid.Nil { // restored from a backup of an earlier release; CheckState has checked that it is the right one
		if err := d.Secret.Write(d.options.Dir, d.parts[Journal].id, d.options.Key); err != nil {
			return err
		}
		p.id = d.parts[Journal].id
	}
	if err := encrypt(d.options); err != nil {
		return err
	}
	if d.pending == nil {
		return nil
	}
	last, err := d.Journal.Last(ctx)
	if err != nil {
		return err
	}
	if d.Journal.Installation() == uuid.Nil {
		if err := d.Journal.SetInstallation(d.pending.ID); err != nil {
			return err
		}
	}
	if err := d.Archive.SetInstallation(d.pending.ID, archive.Mark{Journal: last, Forgotten: d.forgotten}); err != nil {
		return err
	}
	if d.parts[Secret].id == uuid.Nil {
		if err := d.Secret.Write(d.options.Dir, d.pending.ID, d.options.Key); err != nil {
			return err
		}
	}
	if err := removePending(d.options.Dir); err != nil {
		return err
	}
	d.pending = nil
	return nil
}

// Close releases the directory.
func (d *Dir) Close() error {
	var errs []error
	if d.Archive != nil {
		errs = append(errs, d.Archive.Close())
		d.Archive = nil
	}
	if d.Journal != nil {
		errs = append(errs, d.Journal.Close())
		d.Journal = nil
	}
	return errors.Join(errs...)
}
