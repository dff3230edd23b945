// Package oserror distinguishes file errors, however they are wrapped.
package oserror

import (
	"errors"
	"os"
)

// The errors of package os.
var (
	ErrInvalid    = os.ErrInvalid
	ErrPermission = os.ErrPermission
	ErrExist      = os.ErrExist
	ErrNotExist   = os.ErrNotExist
	ErrClosed     = os.ErrClosed
)

func IsPermission(err error) bool { return errors.Is(err, os.ErrPermission) || os.IsPermission(err) }
func IsExist(err error) bool      { return errors.Is(err, os.ErrExist) || os.IsExist(err) }
func IsNotExist(err error) bool   { return errors.Is(err, os.ErrNotExist) || os.IsNotExist(err) }
