package copies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/cluster/requests"
)

// partWait bounds the fetch of one part of 8 MiB, or of a manifest of 64 MiB, from one node, because a node may stall with its connections open.
const partWait = 2 * time.Minute

// A node that has not begun to answer after headFor, because its disk hangs or it was stopped, is given up for this part, and asked last for the next ones.
const (
	headFor    = 15 * time.Second
	stalledFor = time.Minute
)

var errStalled = errors.New("it does not begin to answer")

// fetch gets content from another node, from the first one if that has it. The error wraps fs.ErrNotExist if all nodes have answered that
// they lack it.
func (c *Copies) fetch(ctx context.Context, d buildfiles.Digest, first string) ([]byte, error) {
	if err := enter(ctx, c.fetches); err != nil {
		return nil, err
	}
	defer func() { <-c.fetches }()
	nodes := c.order(c.Net.Others(), first)
	var silent error
	for _, node := range nodes {
		content, err := c.fetchFrom(ctx, node, d)
		if err == nil {
			return content, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			silent = errors.Join(silent, fmt.Errorf("node %s: %w", node, err))
		}
	}
	if silent != nil {
		return nil, fmt.Errorf("part %s of a build: no node that answers has it: %w", d, silent)
	}
	return nil, fmt.Errorf("part %s of a build: %w at any node", d, fs.ErrNotExist)
}

// order sorts nodes in the order in which they are asked.
func (c *Copies) order(nodes []string, first string) []string {
	if i := slices.Index(nodes, first); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(c.penalty(a), c.penalty(b)) })
	return nodes
}

// penalty is 1 for a node that has stalled recently, otherwise 0. mu is held.
func (c *Copies) penalty(node string) int {
	if at, ok := c.stalled[node]; ok && time.Since(at) < stalledFor {
		return 1
	}
	return 0
}

func (c *Copies) fetchFrom(ctx context.Context, node string, d buildfiles.Digest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	ctx, stall := context.WithCancelCause(ctx)
	defer stall(nil)
	late := time.AfterFunc(c.headFor, func() { stall(errStalled) })
	answer, err := c.ask(ctx, node, http.MethodGet, partsPath+d.String(), nil)
	if !late.Stop() && context.Cause(ctx) == errStalled {
		c.mu.Lock()
		c.stalled[node] = time.Now()
		c.mu.Unlock()
		if err == nil {
			answer.Body.Close()
		}
		return nil, errStalled
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fs.ErrNotExist
	default:
		return nil, refusalOf(answer)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, buildfiles.ManifestMax+1))
	if err != nil {
		return nil, err
	}
	if got := buildfiles.DigestOf(content); got != d {
		return nil, fmt.Errorf("the answer has %d bytes with digest %s; want %s", len(content), got, d)
	}
	return content, nil
}

func (c *Copies) ask(ctx context.Context, node, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, requests.URL(node, path), body)
	if err != nil {
		return nil, err
	}
	return c.Net.Do(r)
}

// refusalOf returns the error for an answer that refuses.
func refusalOf(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 512)) // best effort: whatever could be read
	return fmt.Errorf("%s: %s", answer.Status, text)
}
