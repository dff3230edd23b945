package copies

import (
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

// fetch gets content from another node, from the first one if that has it. The error wraps fs.ErrNotExist if all nodes have answered that
// they lack it.
func (c *Copies) fetch(ctx context.Context, d buildfiles.Digest, first string) ([]byte, error) {
	if err := enter(ctx, c.fetches); err != nil {
		return nil, err
	}
	defer func() { <-c.fetches }()
	nodes := c.Net.Others()
	if i := slices.Index(nodes, first); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
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

func (c *Copies) fetchFrom(ctx context.Context, node string, d buildfiles.Digest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	answer, err := c.ask(ctx, node, http.MethodGet, partsPath+d.String(), nil)
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
