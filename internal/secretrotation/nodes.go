package secretrotation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/identity"
)

// QuestionPath is the path at which a node requests a generation of the secret from another. It is only served on connections between nodes, which both have proved
// that they belong to the cluster.
const QuestionPath = "/secret/generation"

// answerMax limits the size of an answer, in bytes.
const answerMax = 4 << 10

// Answer answers the request of another node.
func Answer(secret identity.CellSecret) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.ParseUint(r.URL.Query().Get("number"), 10, 32)
		g, ok := secret.At(uint32(number))
		if err != nil || !ok || !identity.Equal(g.Check(), r.URL.Query().Get("check")) {
			http.Error(w, "this node does not have the generation", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, g.Text()) // the node asks again if it fails
	})
}

// FetchFrom returns a function that gets a generation from other nodes.
func FetchFrom(nodes *requests.Net) func(ctx context.Context, number uint32, check string) (identity.CellSecret, error) {
	return func(ctx context.Context, number uint32, check string) (identity.CellSecret, error) {
		err := errors.New("there is no other node")
		for _, node := range nodes.Others() {
			var g identity.CellSecret
			if g, err = ask(ctx, nodes, node, number, check); err == nil {
				return g, nil
			}
		}
		return identity.CellSecret{}, err
	}
}

func ask(ctx context.Context, nodes *requests.Net, node string, number uint32, check string) (g identity.CellSecret, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait/2) // if this node is down, there is time for another one
	defer cancel()
	query := url.Values{"number": {strconv.FormatUint(uint64(number), 10)}, "check": {check}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, requests.URL(node, QuestionPath)+"?"+query.Encode(), nil)
	if err != nil {
		return g, err
	}
	answer, err := nodes.Do(r)
	if err != nil {
		return g, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	switch {
	case err != nil:
		return g, err
	case answer.StatusCode != http.StatusOK:
		return g, fmt.Errorf("node %s answers %s", node, answer.Status)
	}
	all, err := identity.ParseCellSecret(string(text))
	if err != nil {
		return g, err
	}
	if g, ok := all.At(number); ok && identity.Equal(g.Check(), check) {
		return g, nil
	}
	return g, fmt.Errorf("node %s returned another generation", node)
}
