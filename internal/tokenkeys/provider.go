package tokenkeys

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/hostname"
)

const (
	keysKept        = 10 * time.Minute // if the provider gives no lifetime
	keysKeptLeast   = time.Minute
	keysKeptMost    = 24 * time.Hour
	keysAskedEvery  = 30 * time.Second // for an unknown key: made-up ids must not cause a storm of requests
	keysGoodFor     = 24 * time.Hour   // while the provider is down
	documentBytes   = 1 << 20
	headBytes       = 64 << 10
	providerTimeout = 10 * time.Second
)

// ErrUnknown is the cause of the error of a key that a provider or file does not have.
var ErrUnknown = errors.New("is not known")

// ErrNotFetched is the cause of the error of a key of a provider that does not answer.
var ErrNotFetched = errors.New("fetch keys")

// ProviderConfig says where the keys of an identity provider are.
type ProviderConfig struct {
	Issuer string           // exactly as tokens and its discovery document name it
	JWKS   string           // URL of the keys; empty: the one in the discovery document
	Client *http.Client     // nil: one with a time limit, which stays on the provider's host
	Now    func() time.Time // nil: the wall clock
}

// Provider has the public keys of an identity provider, fetched as they are needed: docs/decisions/0056-keys-of-identity-providers.md.
type Provider struct {
	config ProviderConfig

	mu       sync.Mutex
	keys     jose.JSONWebKeySet // replaced as a whole
	fetched  time.Time          // when the keys were fetched
	asked    time.Time          // when they were asked for
	failed   error              // of the latest fetch
	until    time.Time          // fresh until
	jwks     string
	fetching chan struct{} // closed when the fetch that is under way has ended; nil: none is
}

// NewProvider makes a Provider. It makes no request, because a provider that is down must not prevent the service from starting.
func NewProvider(c ProviderConfig) *Provider {
	c.Client = cmp.Or(c.Client, NewClient(nil))
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Provider{config: c, jwks: c.JWKS}
}

// NewClient returns a client for requests to a provider; nil: with the usual transport. The head of an answer is bounded, like its body.
func NewClient(transport *http.Transport) *http.Client {
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	transport.MaxResponseHeaderBytes = headBytes
	return &http.Client{Timeout: providerTimeout, CheckRedirect: stayOnHost, Transport: transport}
}

// stayOnHost follows no redirect to another host, and none that gives up TLS.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Private reports whether no machine on the way can change what is fetched from a URL: it has TLS, or is on this machine, as in tests.
func Private(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && hostname.IsLoopback(u.Hostname())
}

// Key finds a key by its id. An unknown one is asked for once in a while, and only those who need it wait for that; keys of a
// provider that is down stay good for a day. The error has the cause ErrUnknown only if the provider was asked and does not have the key.
func (p *Provider) Key(ctx context.Context, keyID string) (*jose.JSONWebKey, error) {
	now := p.config.Now()
	p.mu.Lock()
	found, fetching := p.known(keyID), p.fetching
	mayAsk := fetching == nil && (p.asked.IsZero() || now.Sub(p.asked) >= keysAskedEvery)
	switch {
	case mayAsk && (found == nil || now.After(p.until)):
		done := make(chan struct{})
		p.asked, p.fetching = now, done
		p.mu.Unlock()
		err := p.fetch(context.WithoutCancel(ctx), now)
		p.mu.Lock()
		p.fetching, p.failed = nil, err
		close(done)
	case found == nil && fetching != nil:
		p.mu.Unlock()
		select {
		case <-fetching:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		p.mu.Lock()
	}
	found, fetched, failed := p.known(keyID), p.fetched, p.failed
	p.mu.Unlock()
	switch {
	case found != nil && now.Sub(fetched) <= keysGoodFor:
		return found, nil
	case failed != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotFetched, failed)
	}
	return nil, fmt.Errorf("key %.60q of issuer %s %w", keyID, p.config.Issuer, ErrUnknown)
}

// known finds a key. The caller holds mu.
func (p *Provider) known(keyID string) *jose.JSONWebKey {
	for i := range p.keys.Keys {
		k := &p.keys.Keys[i]
		if k.KeyID == keyID && keyID != "" && k.IsPublic() && (k.Use == "" || k.Use == "sig") {
			return k
		}
	}
	return nil
}

func (p *Provider) fetch(ctx context.Context, now time.Time) error {
	p.mu.Lock()
	address := p.jwks
	p.mu.Unlock()
	if address == "" {
		var err error
		if address, err = p.discover(ctx); err != nil {
			return err
		}
	}
	keys, header, err := Fetch(ctx, p.config.Client, address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jwks, p.keys, p.fetched, p.until = address, keys, now, now.Add(freshFor(header.Get("Cache-Control")))
	return nil
}

func (p *Provider) discover(ctx context.Context) (jwks string, err error) {
	var document struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	if _, err := get(ctx, p.config.Client, strings.TrimSuffix(p.config.Issuer, "/")+"/.well-known/openid-configuration", &document); err != nil {
		return "", err
	}
	if document.Issuer != p.config.Issuer {
		return "", fmt.Errorf("the discovery document is of issuer %.100q, want %q", document.Issuer, p.config.Issuer)
	}
	plain := strings.HasPrefix(p.config.Issuer, "http:") // its settings took only one on this machine
	if u, err := url.Parse(document.JWKS); err != nil || u.Scheme != "https" && !(plain && Private(u)) {
		return "", fmt.Errorf("jwks_uri %.100q: want an https URL", document.JWKS)
	}
	return document.JWKS, nil
}

// Fetch asks for the keys at an address, with the head of the answer, which says how long they may be kept.
func Fetch(ctx context.Context, client *http.Client, address string) (keys jose.JSONWebKeySet, header http.Header, err error) {
	header, err = get(ctx, client, address, &keys)
	return keys, header, err
}

func get(ctx context.Context, client *http.Client, address string, into any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", address, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, documentBytes))
	if err != nil {
		return nil, err
	}
	return answer.Header, json.Unmarshal(body, into)
}

// freshFor returns how long keys may be used before they are fetched again.
func freshFor(cacheControl string) time.Duration {
	for part := range strings.SplitSeq(cacheControl, ",") {
		var seconds int64
		if _, err := fmt.Sscanf(strings.TrimSpace(part), "max-age=%d", &seconds); err == nil {
			return min(max(time.Duration(seconds)*time.Second, keysKeptLeast), keysKeptMost)
		}
	}
	return keysKept
}
