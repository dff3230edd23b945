package sso

import (
	"net/http"
	"strconv"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	domaingrants "github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/signin"
)

// showDevice asks for the code that a device shows. If the address has a code, it asks whether the person sees it on a device.
func (d *Door) showDevice(w http.ResponseWriter, r *http.Request) {
	p, ok := d.person(w, r, r.URL.RequestURI())
	if !ok {
		return
	}
	text := r.URL.Query().Get("user_code")
	if text == "" {
		d.show(w, http.StatusOK, "device", view{Title: "Sign in on a device", Who: p.Name})
		return
	}
	x, ok := d.waiting(w, r, &p, text)
	if !ok {
		return
	}
	d.show(w, http.StatusOK, "confirm", view{Title: "Confirm the code", Who: p.Name, Token: d.formToken(&p, x.UserCode), Client: x.Name, Address: x.Address, Target: d.from(r),
		Code: shownCode(x.UserCode), Roles: roleNames(&p)})
}

// waiting returns the request whose code a person has typed. The codes of a person are counted before they are looked up, so that a person cannot guess
// the codes of others. Wrong ones also count as failed sign-ins of the address.
func (d *Door) waiting(w http.ResponseWriter, r *http.Request, p *Person, text string) (x domaingrants.Device, ok bool) {
	again := func(status int, problem string) {
		d.show(w, status, "device", view{Title: "Sign in on a device", Who: p.Name, Problem: problem})
	}
	userCode, well := typedCode(text)
	if !well {
		again(http.StatusBadRequest, "A code has eight letters, such as BCDF-GHJK.")
		return x, false
	}
	if !d.typed.Allow(p.SignIn) {
		again(http.StatusTooManyRequests, "Too many codes. Wait a moment.")
		return x, false
	}
	err := d.config.Engine.Read(r.Context(), func(v *cell.View) error {
		x, ok = v.Device(userCode)
		return nil
	})
	switch {
	case err != nil:
		d.unable(w, err)
		return x, false
	case ok && x.Standing == domaingrants.Waiting && d.now().Before(x.Expires.Std()):
		return x, true
	}
	if slow := d.config.Signins.Fail(signin.Failure{From: d.from(r), Reason: signin.WrongToken}); slow != nil {
		w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
		again(http.StatusTooManyRequests, "Too many wrong codes. Wait a moment.")
		return x, false
	}
	again(http.StatusNotFound, "No device is waiting with this code. A code is valid for ten minutes, and only once.")
	return x, false
}

// answerDevice handles the person's answer.
func (d *Door) answerDevice(w http.ResponseWriter, r *http.Request) {
	p, ok := d.person(w, r, devicePath)
	if !ok {
		return
	}
	userCode, ok := typedCode(r.PostForm.Get("user_code"))
	if !ok || !d.checkForm(r, &p, userCode) {
		d.message(w, http.StatusForbidden, wrongForm)
		return
	}
	cmd := domaingrants.AnswerDevice{UserCode: userCode, SignIn: p.SignIn, Approve: r.PostForm.Get("answer") == "approve"}
	operation := "DenyDevice"
	if cmd.Approve {
		operation = "ApproveDevice"
	}
	if err := d.config.Engine.Do(audit.With(r.Context(), d.origin(r, &p, operation)), &cmd); err != nil {
		d.unable(w, err)
		return
	}
	text := "The device was refused."
	if cmd.Approve {
		text = "The device is signed in. You can close this page, and go back to it."
	}
	d.show(w, http.StatusOK, "message", view{Title: "Sign in on a device", Who: p.Name, Problem: text, Done: true})
}
