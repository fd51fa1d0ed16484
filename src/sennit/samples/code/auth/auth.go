// Package auth decides who may come in.
package auth

import (
	"errors"
	"time"
)

// ErrExpired is returned for a session whose time is over.
var ErrExpired = errors.New("auth: session expired")

// Session is a signed-in user and until when.
type Session struct {
	User    string
	Expires time.Time
}

// Login checks a password and opens a session.
func Login(users *Store, name, password string) (*Session, error) {
	user, err := users.Find(name)
	if err != nil {
		return nil, err
	}
	if !user.Matches(password) {
		return nil, errors.New("auth: wrong password")
	}
	return &Session{User: name, Expires: time.Now().Add(8 * time.Hour)}, nil
}

// Validate says whether a session still holds.
func Validate(session *Session) error {
	if session.Expires.Before(time.Now()) {
		return ErrExpired
	}
	return nil
}

// Refresh gives a session more time.
func (s *Session) Refresh(more time.Duration) {
	s.Expires = s.Expires.Add(more)
}
