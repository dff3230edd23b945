package s3

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
)

// Error is a refusal of the store. It wraps fs.ErrNotExist if the object does not exist.
type Error struct {
	What          string // the operation
	Status        int
	Code, Message string // from the store; empty: none given
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: the object store answers %d", e.What, e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap implements errors.Is. A bucket that does not exist is another error than an object that does not.
func (e *Error) Unwrap() error {
	if e.Status == http.StatusNotFound && (e.Code == "" || e.Code == "NoSuchKey" || e.Code == "NotFound") {
		return fs.ErrNotExist
	}
	return nil
}

// Failure means that a request got no answer or a broken one. It is unknown whether the store executed it, which does no harm with any of these operations.
type Failure struct {
	What  string // the operation
	Cause error
}

func (f *Failure) Error() string { return f.What + ": " + f.Cause.Error() }

// Unwrap implements errors.Is.
func (f *Failure) Unwrap() error { return f.Cause }

// IsFault reports whether an error comes from the store or from the network to it.
func IsFault(err error) bool {
	_, refused := errors.AsType[*Error](err)
	_, failed := errors.AsType[*Failure](err)
	return refused || failed
}

// Again reports whether another attempt may succeed.
func Again(err error) bool { return IsFault(err) && again(err) }

// again is Again for an error of an attempt.
func again(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
	}
	return true // the connection broke, or the store is silent
}

func errorOf(what string, status int, text []byte) error {
	var says struct{ Code, Message string }
	_ = xml.Unmarshal(text, &says) // both stay empty if another program answered
	e := &Error{What: what, Status: status, Code: says.Code, Message: says.Message}
	if e.Code == "" && len(text) > 0 {
		e.Message = strconv.Quote(string(text[:min(len(text), 200)]))
	}
	return e
}
