// Package joining makes a machine a host of a service, once: it generates the key pair, registers the public key at the service with a join token,
// and signs all later connections. The private key never leaves the machine.
package joining

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/hostproof"
)

// FileName is the file in the state directory with the host's identity, including the private key.
const FileName = "host.json"

const (
	patience  = 30 * time.Second // for the answer of the service
	answerMax = 16 << 10
	tokenMax  = 4 << 10
)

// Config describes how a machine joins.
type Config struct {
	Server    *url.URL // of the service
	StateDir  string
	TokenFile string // read while the machine has not joined
	Name      string // of the host
	Location  string // empty: the token's
	Fleet     string // empty: the token's
	Client    *http.Client
	// Address returns the IP address or the DNS name at which players reach the host; the other is empty.
	Address func() (ip, dns string, err error)
}

// identity is the content of the file.
type identity struct {
	Server string `json:"server"`
	Host   string `json:"host,omitempty"` // id; empty: the service has not answered yet
	Name   string `json:"name"`
	Seed   []byte `json:"seed"` // of the private key
}

// Host is this machine as a host.
type Host struct {
	config Config

	mu   sync.Mutex
	id   identity
	last int64 // time in the latest claim
}

// Open reads the identity, if it exists.
func Open(c Config) (*Host, error) {
	h := &Host{config: c}
	text, err := os.ReadFile(h.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &h.id); err != nil || len(h.id.Seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is damaged: remove it, and join again with another token", h.path())
	}
	if h.id.Server != h.server() { // a key is for one service
		h.id = identity{}
	}
	return h, nil
}

func (h *Host) path() string { return filepath.Join(h.config.StateDir, FileName) }

func (h *Host) server() string { return h.config.Server.Scheme + "://" + h.config.Server.Host }

func (h *Host) at(path string) *url.URL {
	u := *h.config.Server
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return &u
}

// Target returns a signed connection. It first joins if the machine has not joined yet.
func (h *Host) Target(ctx context.Context) (link.Target, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id.Host == "" {
		if err := h.join(ctx); err != nil {
			return link.Target{}, err
		}
	}
	ip, dns, err := h.config.Address()
	if err != nil {
		return link.Target{}, err
	}
	u := h.at(hostproof.AgentPath)
	h.last = max(time.Now().UnixMilli(), h.last+1)
	proof := hostproof.Sign(h.key(), hostproof.Claim{Host: h.id.Host, At: h.last, Method: http.MethodGet, Path: u.Path, Server: u.Host, IP: ip, DNS: dns})
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	return link.Target{Endpoint: u.String(), Header: http.Header{"Authorization": {proof}}}, nil
}

func (h *Host) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(h.id.Seed) }

// join registers the public key at the service. The key is saved to disk first, so that a repeat after a lost answer sends the same key.
func (h *Host) join(ctx context.Context) error {
	file, err := os.Open(h.config.TokenFile)
	if err != nil {
		return fmt.Errorf("join token: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(file, tokenMax))
	file.Close()
	if err != nil {
		return fmt.Errorf("join token: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if _, _, ok := hostproof.ReadToken(token); !ok {
		return fmt.Errorf("join token: %s does not have one: want the line that `muster hosts join-token` printed", h.config.TokenFile)
	}
	if h.id.Seed == nil {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		h.id = identity{Server: h.server(), Name: h.config.Name, Seed: private.Seed()}
		if err := h.save(h.id); err != nil {
			h.id = identity{}
			return err
		}
	}
	body, err := json.Marshal(hostproof.Join{
		Token: token, Name: h.config.Name, Location: h.config.Location, Fleet: h.config.Fleet, Key: h.key().Public().(ed25519.PublicKey),
	})
	if err != nil {
		return err
	}
	joined, err := h.ask(ctx, body)
	if err != nil {
		return fmt.Errorf("join %s: %w", h.server(), err)
	}
	id := h.id
	id.Host, id.Name = joined.Host, joined.Name
	if err := h.save(id); err != nil {
		return err // the next attempt repeats the request, and gets the same answer
	}
	h.id = id
	return nil
}

func (h *Host) ask(ctx context.Context, body []byte) (joined hostproof.Joined, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.at(hostproof.JoinPath).String(), bytes.NewReader(body))
	if err != nil {
		return joined, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.config.Client.Do(r)
	if err != nil {
		return joined, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	switch {
	case err != nil:
		return joined, err
	case answer.StatusCode != http.StatusOK:
		return joined, fmt.Errorf("HTTP %d: %s", answer.StatusCode, strings.TrimSpace(string(text[:min(len(text), 500)])))
	}
	if err := json.Unmarshal(text, &joined); err != nil || joined.Host == "" {
		return joined, errors.New("the answer is not that of the service")
	}
	return joined, nil
}

func (h *Host) save(id identity) error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := atomicfile.MakeDir(h.config.StateDir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(h.path(), text, 0o600)
}
