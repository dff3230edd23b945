// Package live has values that a running service replaces, such as those of its settings, while others read them.
package live

import "sync/atomic"

// Value is a value that is replaced as a whole. The zero Value and a nil *Value have the zero value of T. Readers must not change what they get.
type Value[T any] struct{ current atomic.Pointer[T] }

// Of returns a Value.
func Of[T any](value T) *Value[T] {
	v := &Value[T]{}
	v.Set(value)
	return v
}

// Get returns the present value.
func (v *Value[T]) Get() (value T) {
	if v == nil {
		return value
	}
	if p := v.current.Load(); p != nil {
		return *p
	}
	return value
}

// Set replaces the value. Readers that began before may still use the former one.
func (v *Value[T]) Set(value T) { v.current.Store(&value) }
