package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/identity"
)

// LogsPrefix is the prefix of the paths of server processes' output: GET with FLEET/COMPUTE/PROCESS, a process id, or the ARN of a game session after
// it. In the query, tail is the number of earlier lines (default: the last 64 KiB), and follow=true keeps the answer open until the process ends. The
// answer is the output as plain text.
const LogsPrefix = "logs/"

// Headers of an answer with output.
const (
	LogsNote  = "Muster-Note"  // where the output comes from, if not from the process's agent
	LogsError = "Muster-Error" // trailer: why the output ended early
)

// Bounds of an answer with output.
const (
	tailDefault = 64 << 10 // bytes
	tailMax     = 100_000  // lines, as far as they fit into agentproto.TailMax
	// readerPatience is how long a reader may take to read a part of the output, at most 64 KiB.
	readerPatience = time.Minute
)

// Output opens the output of a server process at its agent. next returns io.EOF at its end; after another error, its text says why the output ends.
type Output func(process fleet.Key, bytes, lines int, follow bool) (next func(context.Context) (text string, skipped bool, err error), end func(), err error)

// loggedProcess is the process whose output an operator requests.
type loggedProcess struct {
	keys   []fleet.Key  // its possible keys
	report *exit.Report // nil: the service does not have the tail of its output
}

// logs answers with the output of a server process, live if the query asks for that.
func (d *Door) logs(w http.ResponseWriter, r *http.Request) {
	if by, ok := d.authorize(w, r, nil, identity.MayLook, "look at everything"); ok {
		d.WriteOutput(w, r, by, r.PathValue("id"))
	}
}

// readersOfHolder is how many outputs one access key may have open at a node: half of a node's readers.
const readersOfHolder = 32

// WriteOutput answers an authorized request, as GET does below LogsPrefix: the query is the same, and in a cluster the request may be forwarded to
// the same path on another node.
func (d *Door) WriteOutput(w http.ResponseWriter, r *http.Request, by identity.Principal, id string) {
	lines, follow, err := logsQuery(r)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	holder := cmp.Or(by.Holder(), by.Address)
	if !d.readers.Take(holder, 1) {
		d.refuse(w, r, domain.Refuse(domain.Overloaded, "%s has the output of %d processes open, which is the most that one access key may have at a node", holder, readersOfHolder))
		return
	}
	defer d.readers.Give(holder, 1)
	if err := connlimit.UseFor(r.Context(), connlimit.EventStreams, by.Holder()); err != nil {
		d.refuse(w, r, domain.Refuse(domain.Overloaded, "%s", err))
		return
	}
	defer connlimit.Leave(r.Context())
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the deadline for the request would end the answer
	_ = control.SetWriteDeadline(time.Time{})
	ctx, cancel := by.Within(r.Context())
	defer cancel()
	p, err := d.logged(ctx, id)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	o, err := d.openOutput(ctx, p, lines, follow)
	if err == nil {
		defer o.end()
		o.copyTo(ctx, w, control)
		return
	}
	if node := d.connectedElsewhere(ctx, r, p, err); node != "" {
		d.config.Nodes.Forward(w, r.WithContext(ctx), node, d.config.Private(r), func(cause error) {
			d.refuse(w, r, domain.Refuse(domain.Overloaded, "node %s, to which the agent is connected, cannot be reached: %s", node, cause))
		})
		return
	}
	if p.report == nil {
		d.refuse(w, r, err)
		return
	}
	text := p.report.Output
	if lines > 0 {
		text = text[agentproto.LastLines([]byte(text), lines):]
	}
	w.Header().Set(LogsNote, fmt.Sprintf("the last %d KiB that the service keeps of an ended process, since %s", exit.OutputMax>>10, err))
	logsHeader(w)
	_, _ = io.WriteString(w, text) // the client has gone if it fails
}

func logsQuery(r *http.Request) (lines int, follow bool, err error) {
	q := r.URL.Query()
	if tail := q.Get("tail"); tail != "" {
		if lines, err = strconv.Atoi(tail); err != nil || lines < 1 || lines > tailMax {
			return 0, false, domain.Refuse(domain.Invalid, "tail is %.40q; want a number of lines from 1 to %d", tail, tailMax)
		}
	}
	switch f := q.Get("follow"); f {
	case "", "false":
	case "true":
		follow = true
	default:
		return 0, false, domain.Refuse(domain.Invalid, "follow is %.40q; want true or false", f)
	}
	return lines, follow, nil
}

// logged finds the process to which an id refers.
func (d *Door) logged(ctx context.Context, id string) (p loggedProcess, err error) {
	if game, ok := session.CutARN(id); ok {
		g, err := d.engine.GameSession(ctx, game)
		if err != nil {
			return p, err
		}
		if g.ProcessID == "" {
			return p, domain.Refuse(domain.NotFound, "game session %s has no server process", g.ID)
		}
		return loggedProcess{[]fleet.Key{{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}}, g.Exit}, nil
	}
	p.keys = keysOf(id)
	found, err := d.process(ctx, p.keys)
	if err == nil && found == nil && len(p.keys) == 0 {
		if found, err = d.searchProcess(ctx, id); err == nil && found == nil {
			err = domain.Refuse(domain.NotFound, "process %s not found on any compute; for one that ended a while ago say FLEET/COMPUTE/PROCESS", id)
		}
	}
	if err != nil {
		return p, err
	}
	if found != nil {
		return loggedProcess{[]fleet.Key{found.Key}, found.Exit}, nil
	}
	err = d.engine.Read(ctx, func(v *cell.View) error { // the agent may still have the output of a process that the service no longer knows
		p.keys = slices.DeleteFunc(p.keys, func(k fleet.Key) bool { _, ok := v.Compute(k.Fleet, k.Compute); return !ok })
		return nil
	})
	if err == nil && len(p.keys) == 0 {
		err = domain.Refuse(domain.NotFound, "process %s not found, and no compute of that name", id)
	}
	return p, err
}

// openedOutput is output of which the first part has arrived.
type openedOutput struct {
	next    func(context.Context) (string, bool, error)
	end     func()
	text    string
	skipped bool
	err     error
}

// openOutput opens the output at the agent and waits for its first part.
func (d *Door) openOutput(ctx context.Context, p loggedProcess, lines int, follow bool) (o openedOutput, err error) {
	bytes := tailDefault
	if lines > 0 {
		bytes = agentproto.TailMax
	}
	for _, key := range p.keys {
		if o.next, o.end, err = d.config.Output(key, bytes, lines, follow); err == nil {
			break
		}
	}
	if err != nil {
		return o, err
	}
	if o.text, o.skipped, o.err = o.next(ctx); o.err != nil && !errors.Is(o.err, io.EOF) {
		o.end()
		return o, domain.Refuse(domain.NotFound, "no output of this server process: %s", o.err)
	}
	return o, nil
}

// Nodes are the other nodes of a cluster, each of which has the connections of some agents.
type Nodes interface {
	// Connected returns the node to which the agent of one of these server processes is connected; empty if no node answers so.
	Connected(ctx context.Context, processes []fleet.Key) (node string)
	// Forward has a node answer a request; unreachable answers if that node cannot be reached.
	Forward(w http.ResponseWriter, r *http.Request, node string, private bool, unreachable func(error))
	// Forwarded reports whether another node has forwarded a request, which is then not forwarded again.
	Forwarded(r *http.Request) bool
	Self() string     // id of this node
	Others() []string // ids of the other nodes
}

// connectedElsewhere returns the node connected to the agent of a process whose output could not be opened here, if that is the reason; empty
// otherwise.
func (d *Door) connectedElsewhere(ctx context.Context, r *http.Request, p loggedProcess, why error) (node string) {
	if !domain.IsRefused(why, domain.Conflict) || d.config.Nodes == nil || d.config.Nodes.Forwarded(r) {
		return ""
	}
	return d.config.Nodes.Connected(ctx, p.keys)
}

// copyTo answers with the output. It flushes each part; a reader that does not read a part in time loses the rest.
func (o *openedOutput) copyTo(ctx context.Context, w http.ResponseWriter, control *http.ResponseController) {
	// A reader that does not read must not keep the output open after its key was revoked.
	defer context.AfterFunc(ctx, func() { _ = control.SetWriteDeadline(time.Now()) })()
	w.Header().Set("Trailer", LogsError)
	logsHeader(w)
	for ctx.Err() == nil && o.err == nil {
		if o.skipped {
			o.text = "\n[muster: output was left out here, because it came faster than it was read]\n" + o.text
		}
		_ = control.SetWriteDeadline(time.Now().Add(readerPatience)) // never fails on this port
		if _, err := io.WriteString(w, o.text); err != nil || control.Flush() != nil {
			return
		}
		o.text, o.skipped, o.err = o.next(ctx)
	}
	if ctx.Err() == nil {
		_ = control.SetWriteDeadline(time.Now().Add(readerPatience)) // for the end of the answer, because the last part may have been sent long ago
	}
	if o.err != nil && !errors.Is(o.err, io.EOF) && ctx.Err() == nil {
		w.Header().Set(LogsError, o.err.Error())
	}
}

func logsHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise proxies would buffer the output for minutes
	w.WriteHeader(http.StatusOK)
}
