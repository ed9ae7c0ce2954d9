package main

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// jwt is a signed token of somebody else's.
type jwt struct {
	header struct {
		Algorithm     string `json:"alg"`
		Thumbprint    string `json:"x5t"`
		ThumbprintTwo string `json:"x5t#S256"`
	}
	claims    jwtClaims
	signed    string
	signature []byte
}

type jwtClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	ID        string   `json:"jti"`
	NotBefore int64    `json:"nbf"`
	Expires   int64    `json:"exp"`
}

// audience is a text or a list of them.
type audience []string

func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func parseJWT(text string) (*jwt, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return nil, errors.New("there are not three parts")
	}
	t := &jwt{signed: parts[0] + "." + parts[1]}
	for i, into := range []any{&t.header, &t.claims} {
		plain, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(plain, into)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	t.signature, err = base64.RawURLEncoding.DecodeString(parts[2])
	return t, err
}

func (t *jwt) isSignedBy(key *rsa.PublicKey) bool {
	sum := sha256.Sum256([]byte(t.signed))
	switch t.header.Algorithm {
	case "RS256":
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], t.signature) == nil
	case "PS256":
		return rsa.VerifyPSS(key, crypto.SHA256, sum[:], t.signature, nil) == nil
	}
	return false
}

// inTime allows the clocks five minutes.
func (t *jwt) inTime(now int64) *tokenRefusal {
	if t.claims.Expires+300 < now || t.claims.NotBefore > now+300 || t.claims.Expires == 0 {
		return refuseToken(401, "invalid_client", 700024, "Client assertion is not within its valid time range. Current time: %d, "+
			"assertion valid from %d, expiry time of assertion %d.", now, t.claims.NotBefore, t.claims.Expires)
	}
	return nil
}

// accessClaims are those of a token of ours.
type accessClaims struct {
	Audience  string `json:"aud"`
	Issuer    string `json:"iss"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	AppID     string `json:"appid"`
	Kind      string `json:"idtyp"`
	ObjectID  string `json:"oid"`
	Subject   string `json:"sub"`
	Tenant    string `json:"tid"`
	Version   string `json:"ver"`
}

// sign is keyed by the seed, so that tokens outlive a restart.
func (d *azureDoor) sign(text string) string {
	mac := hmac.New(sha256.New, fmt.Append(nil, "tenant of ", d.cloud.seed))
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// issue is a principal's access token.
func (d *azureDoor) issue(p *azurePrincipal, audience string) string {
	now := time.Now().Unix()
	claims, _ := json.Marshal(accessClaims{strings.TrimSuffix(audience, "/"), "https://sts.windows.net/" + d.conf.Tenant + "/", now,
		now, now + int64(time.Duration(d.conf.TokensLast).Seconds()), p.ClientID, "app", p.ObjectID, p.ObjectID, d.conf.Tenant, "1.0"})
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode(claims)
	return text + "." + d.sign(text)
}

// authenticate finds whose token a call of ARM bears.
func (d *azureDoor) authenticate(r *http.Request) (*azurePrincipal, *armRefusal) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return nil, unauthorized("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	text, isBearer := strings.CutPrefix(header, "Bearer ")
	parts := strings.Split(text, ".")
	if !isBearer || len(parts) != 3 || d.sign(parts[0]+"."+parts[1]) != parts[2] {
		return nil, unauthorized("InvalidAuthenticationToken", "The access token is invalid.")
	}
	var claims accessClaims
	plain, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(plain, &claims); err != nil {
		return nil, unauthorized("InvalidAuthenticationToken", "The access token is invalid.")
	}
	i := slices.IndexFunc(d.conf.Principals, func(p *azurePrincipal) bool { return p.ClientID == claims.AppID })
	switch {
	case claims.Expires <= time.Now().Unix():
		return nil, unauthorized("ExpiredAuthenticationToken", "The access token expiry UTC time '%s' is earlier than current UTC time.",
			time.Unix(claims.Expires, 0).UTC())
	case !d.isAudience(claims.Audience):
		return nil, unauthorized("InvalidAuthenticationTokenAudience", "The access token has been obtained for wrong audience or "+
			"resource '%s'. It should exactly match with one of the allowed audiences '%s'.", claims.Audience,
			strings.Join(d.conf.Audiences, "','"))
	case claims.Tenant != d.conf.Tenant || i < 0:
		return nil, unauthorized("InvalidAuthenticationTokenTenant", "The access token is from the wrong issuer.")
	}
	return d.conf.Principals[i], nil
}

// may tells whether the principal's role has an action: patterns with *, those of not_actions taken away.
func (p *azurePrincipal) may(action string) bool {
	matches := func(pattern string) bool {
		whole := "(?i)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		return regexp.MustCompile(whole).MatchString(action)
	}
	return slices.ContainsFunc(p.Actions, matches) && !slices.ContainsFunc(p.NotActions, matches)
}
