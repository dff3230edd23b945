package providers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/people/providertest"
)

// only returns the client's side of a provider.
func only(t *testing.T, p *providertest.Provider) *Provider {
	t.Helper()
	content, err := json.Marshal(map[string]any{"providers": []any{p.Settings(t, "studio", map[string][]string{"admin": {"ops"}})}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return file.Providers[0]
}

type hangs struct{ asked atomic.Int32 }

func (h *hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// All who wait for the metadata of a provider that hangs get their answer when the one request for them has failed.
func TestManyWaitForAProviderThatHangs(t *testing.T) {
	p := only(t, providertest.New(t))
	synctest.Test(t, func(t *testing.T) {
		var h hangs
		p.client = &http.Client{Timeout: answerTimeout, Transport: &h}
		began := time.Now()
		const many = 5
		failed := make(chan error, many)
		for range many {
			go func() {
				_, err := p.AuthURL(t.Context(), Request{})
				failed <- err
			}()
		}
		for range many {
			if err := <-failed; !errors.Is(err, ErrUnreachable) {
				t.Errorf("%v, want ErrUnreachable", err)
			}
		}
		if n, wait := h.asked.Load(), time.Since(began); n != 1 || wait > answerTimeout {
			t.Errorf("%d requests in %v, want 1 in %v", n, wait, answerTimeout)
		}
	})
}

// A request that ends while it waits says nothing about the provider's answer.
func TestRequestEndsWhileTheProviderHangs(t *testing.T) {
	p := only(t, providertest.New(t))
	synctest.Test(t, func(t *testing.T) {
		p.client = &http.Client{Timeout: answerTimeout, Transport: new(hangs)}
		go func() { _, _ = p.AuthURL(t.Context(), Request{}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.CheckIssuer(ctx, url.Values{}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%v, want ErrUnreachable", err)
		}
		time.Sleep(answerTimeout)
	})
}

// A sign-in whose keys or userinfo cannot be fetched was not refused by the provider.
func TestExchangeWithoutKeysOrUserinfo(t *testing.T) {
	for _, path := range []string{"/keys", "/userinfo"} {
		for name, answer := range map[string]func(http.ResponseWriter){
			"503":        func(w http.ResponseWriter) { http.Error(w, "down", http.StatusServiceUnavailable) },
			"connection": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				real := providertest.New(t)
				real.Claims = func(claims map[string]any) { delete(claims, "groups") } // so they are asked for
				real.Serve = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == path {
						answer(w)
						return true
					}
					return false
				}
				p := only(t, real)
				r := Request{Redirect: "https://muster.example.com/back", State: "s", Nonce: "n", Verifier: "0123456789-0123456789-0123456789-0123456789"}
				to, err := p.AuthURL(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				u, err := url.Parse(to)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Exchange(t.Context(), r, real.Code(u.Query())); !errors.Is(err, ErrUnreachable) {
					t.Errorf("%v, want ErrUnreachable", err)
				}
			})
		}
	}
}
