package localdoor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/secretkey"
)

// ErrNoService means that no service runs on the data directory.
var ErrNoService = errors.New("no service answers for this data directory")

// ErrHangs means that the service's process exists but does not answer.
var ErrHangs = errors.New("the service hangs")

// answerMax limits the size of an answer, in bytes. It exceeds a list of the maximum number of keys.
const answerMax = 64 << 20

// Client calls the service that runs on a data directory.
type Client struct {
	file   serviceFile
	secret identity.CellSecret
	user   string
	http   http.Client

	Reason string // of the changes, for the audit log; empty: none
}

// NewClient finds the service. The error wraps ErrNoService if the directory does not name the address of one. user is a note for the
// audit record. key encrypts the secrets of the directory.
func NewClient(dir string, key *secretkey.Key, user string) (*Client, error) {
	file, err := readServiceFile(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoService
	}
	if err != nil {
		return nil, notOurs(err, dir)
	}
	secret, err := identity.ReadCellSecret(dir, key)
	if err != nil {
		return nil, notOurs(err, dir)
	}
	c := &Client{file: file, secret: secret, user: user}
	c.http.Timeout = answerPatience
	c.http.Transport = &http.Transport{DialContext: (&net.Dialer{Timeout: readPatience}).DialContext, DisableKeepAlives: true}
	return c, nil
}

// notOurs adds advice to the error for a data directory of another user.
func notOurs(err error, dir string) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run this as the user to whom %s belongs, or as root", err, dir)
	}
	return err
}

func (c *Client) sender() sender { return sender{c.user, c.Reason} }

// Runs reports whether the service answers. It fails with ErrHangs if the service exists but does not answer within a time.
func (c *Client) Runs(ctx context.Context, within time.Duration) (bool, error) {
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := c.call(asking, runsPath, struct{}{}, &struct{}{})
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() && ctx.Err() == nil {
		return false, fmt.Errorf("%w: no answer from %s within %s", ErrHangs, c.file.Address, within)
	}
	if err != nil && !refusedTheDial(err) { // an earlier release does not know this request, and its answer proves nothing, so it is asked for its keys
		_, err = c.List(ctx)
	}
	return err == nil, nil
}

// List returns all keys in the order of their creation, including revoked ones.
func (c *Client) List(ctx context.Context) (all []keyring.Document, err error) {
	err = c.call(ctx, listPath, struct{}{}, &all)
	return all, err
}

// Create makes a key. It works when Create returns.
func (c *Client) Create(ctx context.Context, n keyring.New) (d keyring.Document, err error) {
	n.ID = cmp.Or(n.ID, identity.NewKeyID())
	if err := c.call(ctx, createPath, createRequest{n.ID, n.Role, n.Name, n.Expires, n.Sources, c.sender()}, &d); err != nil {
		return d, err
	}
	d.Secret, err = c.Secret(&d)
	return d, err
}

// Revoke revokes a key. When it returns, every door refuses the key.
func (c *Client) Revoke(ctx context.Context, id string) (d keyring.Document, err error) {
	err = c.call(ctx, revokePath, revokeRequest{id, c.sender()}, &d)
	return d, err
}

// Rotate makes the successor of a key. Both work when Rotate returns.
func (c *Client) Rotate(ctx context.Context, x keyring.Rotation) (d keyring.Rotated, err error) {
	x.Successor = cmp.Or(x.Successor, identity.NewKeyID())
	if err := c.call(ctx, rotatePath, rotateRequest{x.ID, x, c.sender()}, &d); err != nil {
		return d, err
	}
	d.Successor.Secret, err = c.Secret(&d.Successor)
	return d, err
}

// FinishRotation revokes a key that has a successor. When it returns, every door refuses the key.
func (c *Client) FinishRotation(ctx context.Context, id string) (d keyring.Document, err error) {
	err = c.call(ctx, finishPath, revokeRequest{id, c.sender()}, &d)
	return d, err
}

// Limit changes the limits of a key. When it returns, every door enforces them.
func (c *Client) Limit(ctx context.Context, x keyring.Limits) (d keyring.Document, err error) {
	err = c.call(ctx, limitPath, limitRequest{x.ID, x, c.sender()}, &d)
	return d, err
}

// RevokeCredentials revokes temporary credentials. When it returns, every door of the node refuses them.
func (c *Client) RevokeCredentials(ctx context.Context, x keyring.Credentials) error {
	return c.call(ctx, revokeCredentialsPath, revokeCredentialsRequest{x, c.sender()}, &struct{}{})
}

// Secret derives the secret of a key.
func (c *Client) Secret(d *keyring.Document) (string, error) { return d.SecretOf(c.secret) }

// awake is called before long operations, so that a command that a timer runs does not wait forever for a service that hangs.
func (c *Client) awake(ctx context.Context) error {
	_, err := c.Runs(ctx, answerPatience)
	return err
}

// call sends a signed request. An answer that is not signed comes from another program: no service runs at that address.
func (c *Client) call(ctx context.Context, path string, in, out any) error {
	answer, nonce, err := c.send(ctx, path, in)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return c.readAnswer(answer, nonce, out)
}

func (c *Client) send(ctx context.Context, path string, in any) (answer *http.Response, nonce string, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.file.Address+path, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	random := make([]byte, nonceSize)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	key, nonce, date := c.secret.LocalKey(), hex.EncodeToString(random), strconv.FormatInt(time.Now().UnixMilli(), 10)
	r.Header.Set(dateHeader, date)
	r.Header.Set(nonceHeader, nonce)
	r.Header.Set(proofHeader, requestProof(key, c.file.Run, r.Method, path, date, nonce, body))
	if answer, err = c.http.Do(r); err != nil {
		if refusedTheDial(err) {
			return nil, "", fmt.Errorf("%w: %w", ErrNoService, err)
		}
		return nil, "", fmt.Errorf("ask the service: %w", err)
	}
	return answer, nonce, nil
}

// refusedTheDial reports whether nothing listens at the address.
func refusedTheDial(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// readAnswer reads and verifies an answer that is not a stream.
func (c *Client) readAnswer(answer *http.Response, nonce string, out any) error {
	key := c.secret.LocalKey()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return fmt.Errorf("ask the service: %w", err)
	}
	if !equal(answer.Header.Get(proofHeader), answerProof(key, nonce, answer.StatusCode, text)) {
		return fmt.Errorf("%w: %s is another program, or one with another cell.secret (it answers %s: %.200s)", ErrNoService, c.file.Address, answer.Status, bytes.TrimSpace(text))
	}
	if answer.StatusCode == http.StatusOK {
		return json.Unmarshal(text, out)
	}
	var p problem
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("answer of the service: %w", err)
	}
	for _, reason := range domain.Reasons() {
		if reason.String() == p.Reason {
			return &domain.Refusal{Reason: reason, Detail: p.Message}
		}
	}
	return fmt.Errorf("the service answers: %s", p.Message)
}
