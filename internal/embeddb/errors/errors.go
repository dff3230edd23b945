// Package errors replaces github.com/cockroachdb/errors. It has the functions that Pebble calls, with the same messages and the same chains
// of causes. It omits stacks, details for reports to Sentry and an encoding for Protocol Buffers, which nothing here reads, and with them
// eight modules that the binary would otherwise contain. Muster's go.mod replaces the library by this package; an update of Pebble that
// needs more does not compile.
package errors

import (
	"errors"

	"github.com/cockroachdb/redact"
)

// New returns an error with a message.
func New(message string) error { return &failure{message: message} }

// Newf returns an error with a formatted message. An operand of %w is its cause.
func Newf(format string, args ...any) error {
	message, cause := redact.HelperForErrorf(format, args...)
	return &failure{message: message.StripMarkers(), cause: cause}
}

// Errorf is Newf.
func Errorf(format string, args ...any) error { return Newf(format, args...) }

// AssertionFailedf returns an error that reports a mistake in the program.
func AssertionFailedf(format string, args ...any) error { return &assertion{Newf(format, args...)} }

// IsAssertionFailure reports whether AssertionFailedf made err itself.
func IsAssertionFailure(err error) bool {
	_, ok := err.(*assertion)
	return ok
}

// Wrap returns err with a message before its own; nil if err is nil.
func Wrap(err error, message string) error {
	if err == nil {
		return nil
	}
	if message == "" {
		return err
	}
	return &failure{message: message + ": " + err.Error(), cause: err}
}

// Wrapf is Wrap with a formatted message.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return Wrap(err, redact.Sprintf(format, args...).StripMarkers())
}

// Mark returns err with reference as an additional identity for Is; nil if err is nil.
func Mark(err, reference error) error {
	if err == nil {
		return nil
	}
	return &marked{err, reference}
}

// CombineErrors returns the first of two errors that is not nil.
func CombineErrors(err, other error) error {
	if err == nil {
		return other
	}
	return err
}

// The library's additional details are for reports and for %+v, so these functions omit them.

func WithStack(err error) error                           { return err }
func WithDetailf(err error, _ string, _ ...any) error     { return err }
func WithHintf(err error, _ string, _ ...any) error       { return err }
func WithSafeDetails(err error, _ string, _ ...any) error { return err }
func WithSecondaryError(err error, _ error) error         { return err }
func Safe(value any) redact.SafeValue                     { return redact.Safe(value) }
func Is(err, reference error) bool                        { return errors.Is(err, reference) }
func As(err error, target any) bool                       { return errors.As(err, target) }
func Join(errs ...error) error                            { return errors.Join(errs...) }

// UnwrapAll returns the innermost cause of err.
func UnwrapAll(err error) error {
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			return err
		}
		err = cause
	}
}

type failure struct {
	message string
	cause   error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

type assertion struct{ error }

func (a *assertion) Unwrap() error { return a.error }

type marked struct {
	error
	reference error
}

func (m *marked) Unwrap() error        { return m.error }
func (m *marked) Is(target error) bool { return errors.Is(m.reference, target) }
