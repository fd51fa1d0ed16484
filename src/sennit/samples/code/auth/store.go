package auth

import "errors"

// User is somebody who may sign in.
type User struct {
	Name string
	hash []byte
}

// Matches compares a password with the stored hash.
func (u *User) Matches(password string) bool {
	return string(u.hash) == scramble(password)
}

// Store keeps users by name.
type Store struct {
	users map[string]*User
}

// Find looks a user up by name.
func (s *Store) Find(name string) (*User, error) {
	user, ok := s.users[name]
	if !ok {
		return nil, errors.New("auth: no such user")
	}
	return user, nil
}

func scramble(password string) string {
	out := []byte(password)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}
