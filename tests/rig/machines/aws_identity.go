package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// issued are the temporary credentials that this program made up.
type issued struct {
	mu     sync.Mutex
	Serial int
	byKey  map[string]*temporary
	tokens map[string]time.Time // of IMDSv2: until when
}

type temporary struct {
	keyID, secret, token, arn, userID string
	expires                           time.Time
}

// issue makes credentials of the role, for a session.
func (d *awsDoor) issue(session string, now time.Time) *temporary {
	s := &d.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Serial++
	seed := fmt.Sprint(session, s.Serial, now.UnixNano())
	t := &temporary{keyID: "ASIA" + strings.ToUpper(hex16(seed+"key")), secret: hex16(seed+"s1") + "/" + hex16(seed+"s2"),
		token:   "FwoGZXIvYXdzE" + hex16(seed+"t1") + "+/" + hex16(seed+"t2") + "==",
		arn:     fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", d.conf.Account, d.conf.Role, session),
		userID:  "AROAEXAMPLEROLEID:" + session,
		expires: now.Add(time.Duration(*d.conf.CredentialsLast)).Truncate(time.Second)}
	s.byKey[t.keyID] = t
	return t
}

func hex16(text string) string { return hexDigits(text, 16) }

// known is whose key that is; wrong, forgotten and expired ones are told apart as AWS does.
func (d *awsDoor) known(keyID, token string, now time.Time) (*caller, *awsError) {
	for _, k := range d.conf.Keys {
		if k.ID == keyID {
			user := or(k.User, "tester")
			return &caller{arn: "arn:aws:iam::" + d.conf.Account + ":user/" + user, userID: "AIDAEXAMPLE", secret: k.Secret}, nil
		}
	}
	d.sessions.mu.Lock()
	defer d.sessions.mu.Unlock()
	t := d.sessions.byKey[keyID]
	if t == nil || t.token != token {
		return nil, &awsError{403, "InvalidClientTokenId", "The security token included in the request is invalid."}
	}
	if !now.Before(t.expires) {
		return nil, &awsError{403, "ExpiredToken", "The security token included in the request is expired"}
	}
	return &caller{arn: t.arn, userID: t.userID, secret: t.secret}, nil
}

// metadata adds the instance metadata service (version 2 only) and the Pod Identity agent.
func (d *awsDoor) metadata(plain *http.ServeMux) {
	plain.HandleFunc("PUT /latest/api/token", d.metadataToken)
	plain.HandleFunc("GET /latest/meta-data/iam/security-credentials/{$}", d.withToken(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, d.conf.Role) }))
	plain.HandleFunc("GET /latest/meta-data/iam/security-credentials/{role}", d.withToken(d.metadataCredentials))
	plain.HandleFunc("GET /latest/meta-data/placement/region", d.withToken(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, d.conf.Region) }))
	plain.HandleFunc("GET /v1/credentials", d.podIdentity)
}

func (d *awsDoor) metadataToken(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
	if err != nil || seconds < 1 || seconds > 21600 {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	now := time.Now()
	token := "AQAEA" + hex16(fmt.Sprint("imds", now.UnixNano())) + "=="
	d.sessions.mu.Lock()
	d.sessions.tokens[token] = now.Add(time.Duration(seconds) * time.Second)
	d.sessions.mu.Unlock()
	w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", strconv.Itoa(seconds))
	fmt.Fprint(w, token)
}

func (d *awsDoor) withToken(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.sessions.mu.Lock()
		until, ok := d.sessions.tokens[r.Header.Get("X-Aws-Ec2-Metadata-Token")]
		d.sessions.mu.Unlock()
		if !ok || time.Now().After(until) {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		serve(w, r)
	}
}

func (d *awsDoor) metadataCredentials(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("role") != d.conf.Role {
		http.NotFound(w, r)
		return
	}
	now := time.Now()
	t := d.issue("i-0123456789abcdef0", now)
	json.NewEncoder(w).Encode(map[string]string{"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": stamp(now.UnixMilli()),
		"AccessKeyId": t.keyID, "SecretAccessKey": t.secret, "Token": t.token, "Expiration": stamp(t.expires.UnixMilli())})
}

func (d *awsDoor) podIdentity(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != d.conf.PodIdentityToken {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"message": "[InvalidIdentityToken]: the service account token is not valid"})
		return
	}
	t := d.issue("eks-prod-preheat", time.Now())
	json.NewEncoder(w).Encode(map[string]string{"AccessKeyId": t.keyID, "SecretAccessKey": t.secret, "Token": t.token,
		"AccountId": d.conf.Account, "Expiration": stamp(t.expires.UnixMilli())})
}

func stamp(millis int64) string { return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05Z") }
