package copies

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// Times of spread.
const (
	patience   = 30 * time.Second              // time without progress after which the attempt is given up, because the other nodes refuse or cannot be reached
	slowest    = holdFor + holdMost + patience // the same while a node that was asked may be fetching a part
	spreadMax  = 12 * time.Hour                // less than sweeps keep content that no build needs: the first nodes to hold it must not have swept it
	askAgain   = time.Second                   // after a node refused or could not be reached
	spreadLook = 100 * time.Millisecond
)

// NotHeldError is the reason why a build is not recorded: too few nodes hold its files.
type NotHeldError struct {
	Nodes, Majority int
	Why             []string // of each node that does not hold them
}

func (e *NotHeldError) Error() string {
	return fmt.Sprintf("the files of the build are at %d of the nodes that vote; want %d: %s", e.Nodes, e.Majority, strings.Join(e.Why, "; "))
}

// holding is the progress of one node towards holding a build.
type holding struct {
	holds bool
	left  int // parts; -1: the node is busy with others
	why   error
}

// spread returns once a majority of the voting nodes holds a build that this node has. It asks the nodes concurrently.
func (c *Copies) spread(ctx context.Context, manifest buildfiles.Digest) error {
	ctx, cancel := context.WithTimeout(ctx, spreadMax)
	defer cancel()
	type answer struct {
		node string
		holding
	}
	answers := make(chan answer, 64)
	states, asked, notBefore := map[string]holding{}, map[string]bool{}, map[string]time.Time{}
	progress := time.Now()
	for {
		held, want := c.count(states)
		if want > 0 && held >= want {
			return nil
		}
		if quiet := time.Since(progress); quiet > slowest || quiet > patience && c.allRefuse(states) {
			return c.notHeld(states, held, want)
		}
		for _, m := range c.Net.Members() {
			if m.ID == c.Net.Self() || !m.Votes || asked[m.ID] || states[m.ID].holds || time.Now().Before(notBefore[m.ID]) || len(asked) == cap(answers) {
				continue
			}
			asked[m.ID] = true
			go func() { answers <- answer{m.ID, c.askToHold(ctx, m.ID, manifest)} }() // the channel has room for it, so the goroutine ends with the question
		}
		select {
		case a := <-answers:
			delete(asked, a.node)
			if before := states[a.node]; a.holds || a.why == nil && (a.left < before.left || before.left <= 0) {
				progress = time.Now()
			}
			if a.why != nil {
				notBefore[a.node] = time.Now().Add(askAgain)
			}
			states[a.node] = a.holding
		case <-time.After(spreadLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// allRefuse reports whether each other voting node that does not hold the build refused or could not be reached when it was last asked.
func (c *Copies) allRefuse(states map[string]holding) bool {
	for _, m := range c.Net.Members() {
		if s := states[m.ID]; m.Votes && m.ID != c.Net.Self() && !s.holds && s.why == nil {
			return false
		}
	}
	return true
}

// count returns how many voting nodes hold a build that this node has, and the size of a majority; 0: the members are not known.
func (c *Copies) count(states map[string]holding) (held, majority int) {
	voters := 0
	for _, m := range c.Net.Members() {
		if !m.Votes {
			continue
		}
		voters++
		if m.ID == c.Net.Self() || states[m.ID].holds {
			held++
		}
	}
	if voters == 0 {
		return 0, 0
	}
	return held, voters/2 + 1
}

func (c *Copies) notHeld(states map[string]holding, held, majority int) error {
	e := &NotHeldError{Nodes: held, Majority: majority}
	for node, s := range states {
		switch {
		case s.holds:
		case s.why != nil:
			e.Why = append(e.Why, fmt.Sprintf("node %s: %v", node, s.why))
		default:
			e.Why = append(e.Why, fmt.Sprintf("node %s lacks %d parts and makes no progress", node, s.left))
		}
	}
	slices.Sort(e.Why)
	return e
}

// askToHold makes another node fetch the parts of a build that it lacks, for a limited time.
func (c *Copies) askToHold(ctx context.Context, node string, manifest buildfiles.Digest) holding {
	ctx, cancel := context.WithTimeout(ctx, c.holdFor+holdMost+askedWait)
	defer cancel()
	answer, err := c.ask(ctx, node, http.MethodPost, holdPath+manifest.String()+"?"+fromQuery+"="+c.Net.Self(), nil)
	if err != nil {
		return holding{why: err}
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return holding{holds: true}
	case http.StatusAccepted:
		left, err := strconv.Atoi(answer.Header.Get(leftHeader))
		if err != nil {
			return holding{why: errors.New("its answer does not say how many parts it lacks")}
		}
		return holding{left: left}
	}
	return holding{why: refusalOf(answer)}
}
