package sso

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	domaingrants "github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/signin"
)

// letters of a user code: no vowels, so that codes form no words, and no letters that look alike. Eight letters have 34 bits. Source: RFC 8628,
// section 6.1.
const (
	letters     = "BCDFGHJKLMNPQRSTVWXZ"
	userLetters = 8
)

// userCodeTries is how many user codes are tried if codes are taken.
const userCodeTries = 3

// startURLMax bounds the start URL. It has no meaning here, but the CLI names its sign-ins by it.
const startURLMax = 2048

type deviceAsks struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	StartURL     string `json:"startUrl"`
}

type deviceWaits struct {
	DeviceCode      string `json:"deviceCode"`
	UserCode        string `json:"userCode"`
	Verification    string `json:"verificationUri"`
	VerificationAll string `json:"verificationUriComplete"`
	ExpiresIn       int    `json:"expiresIn"`
	Interval        int    `json:"interval"`
}

// known returns the client with an id and a secret.
func (d *Door) known(r *http.Request, id, secret string) (*client, *problem) {
	var x client
	if !d.open(clientKind, id, clientIDMax, &x) || !d.isClientSecret(secret, id) {
		return nil, d.signInFailed(r, signin.WrongToken, slowDown, invalidClient.because("The client is not registered here, or its secret is wrong."))
	}
	if !d.now().Before(x.Expires) {
		return nil, invalidClient.because("The registration of the client has expired.")
	}
	return &x, nil
}

func (d *Door) startDeviceAuthorization(w http.ResponseWriter, r *http.Request) (any, *problem) {
	from := d.from(r)
	if !d.registers.Allow(from) {
		return nil, slowDown.because("Too many device requests from this address; try again in a moment.")
	}
	var in deviceAsks
	if p := d.read(w, r, &in); p != nil {
		return nil, p
	}
	if in.StartURL == "" || len(in.StartURL) > startURLMax {
		return nil, invalidRequest.because("startUrl: " + strconv.Itoa(len(in.StartURL)) + " bytes; want 1 to 2048")
	}
	x, p := d.known(r, in.ClientID, in.ClientSecret)
	if p != nil {
		return nil, p
	}
	if x.Grants&byDevice == 0 {
		return nil, unauthorizedClient.because("The client was not registered for the grant type " + deviceGrant + ".")
	}
	client := short(in.ClientID)
	token := d.seal(deviceKind, &deviceCode{ID: newID(), Client: client, Expires: d.now().Add(domaingrants.DeviceLife)})
	cmd := domaingrants.AskDevice{Code: hashOf(token), Client: client, Name: x.Name, Address: from, Renews: x.Renews}
	var err error
	for range userCodeTries {
		cmd.UserCode = newUserCode()
		if err = d.config.Engine.Do(r.Context(), &cmd); !domain.IsRefused(err, domain.Conflict) {
			break
		}
	}
	if err != nil {
		return nil, d.failure("StartDeviceAuthorization", internalServer, err)
	}
	shown := shownCode(cmd.UserCode)
	at := d.base(r) + devicePath
	return deviceWaits{token, shown, at, at + "?user_code=" + shown, int(domaingrants.DeviceLife.Seconds()), pollInterval}, nil
}

// hashOf returns the hash of a device's code that the state has.
func hashOf(code string) string { return hex.EncodeToString(digest(code)) }

func newUserCode() string {
	code := make([]byte, 0, userLetters)
	random := make([]byte, 4*userLetters)
	for {
		rand.Read(random) // never fails: since Go 1.24 it ends the program instead
		for _, b := range random {
			if int(b) < 256/len(letters)*len(letters) { // otherwise some letters would be more frequent
				if code = append(code, letters[int(b)%len(letters)]); len(code) == userLetters {
					return string(code)
				}
			}
		}
	}
}

// shownCode returns a user code with a dash in the middle.
func shownCode(code string) string { return code[:userLetters/2] + "-" + code[userLetters/2:] }

// typedCode parses a user code as people type it.
func typedCode(text string) (code string, ok bool) {
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(text))
	return code, len(code) == userLetters && strings.Trim(code, letters) == ""
}

// collect returns the sign-in session for which a device may act. The device's code has a signature of this cell.
func (d *Door) collect(r *http.Request, token string, x *deviceCode) (signIn string, renews bool, p *problem) {
	if !d.now().Before(x.Expires) {
		return "", false, expiredToken.because("No person has answered in time.")
	}
	if !d.polls.Allow(token) {
		return "", false, slowDown.because("The device polls too often; want one request in " + plural.Of(pollInterval, "second", "seconds") + ".")
	}
	device, err := d.device(r, token)
	if err != nil {
		return "", false, d.failure("CreateToken", internalServer, err)
	}
	switch device.Standing {
	case domaingrants.Waiting: // or this node has not received the request yet
		return "", false, pending.because("No person has answered yet.")
	case domaingrants.Denied:
		return "", false, accessDenied.because("The person has denied the request.")
	}
	err = d.config.Engine.Do(r.Context(), &domaingrants.CollectDevice{Code: hashOf(token), Client: x.Client})
	switch {
	case domain.IsRefused(err, domain.Conflict):
		d.stolen(r, "device code", device.SignIn)
		return "", false, invalidGrant.because("The device code was used before.")
	case domain.IsRefused(err, domain.NotFound):
		return "", false, expiredToken.because("The device request has expired.")
	case err != nil:
		return "", false, d.failure("CreateToken", internalServer, err)
	}
	return device.SignIn, device.Renews, nil
}

// device returns the request of a device in this node's state; the zero Device if there is none.
func (d *Door) device(r *http.Request, token string) (x domaingrants.Device, err error) {
	err = d.config.Engine.ReadHere(r.Context(), func(v *cell.View) error {
		x, _ = v.DeviceOf(hashOf(token))
		return nil
	})
	return x, err
}

// stolen ends the session whose code was used twice, because one of the two users must have stolen it.
func (d *Door) stolen(r *http.Request, what, signIn string) {
	d.config.Log.Warn(what+" was used twice: its sign-in session is ended", "session", signIn, "address", d.from(r))
	ctx := context.WithoutCancel(r.Context()) // the sender of the code may have disconnected
	if err := d.config.People.End(ctx, d.origin(r, &Person{Holder: signIn}, "CreateToken"), signIn, CodeTwice); err != nil {
		d.config.Log.Error("sign-in session could not be ended", "session", signIn, "error", err)
	}
}
