package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"
)

// serverTLS has an authority sign a certificate for loopback. The authority's own is written to caPath and its key beside
// it; a restart takes them again, so that clients need not be told.
func serverTLS(caPath string) (*tls.Config, error) {
	authority, key, err := openAuthority(caPath)
	if err != nil {
		return nil, err
	}
	leaf := template(time.Now().UnixNano(), "rig machines")
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, authority, &own.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: own}}}, nil
}

func openAuthority(caPath string) (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.LoadX509KeyPair(caPath, caPath+".key")
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeAuthority(caPath); err == nil {
			pair, err = tls.LoadX509KeyPair(caPath, caPath+".key")
		}
	}
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	key, ok := pair.PrivateKey.(crypto.Signer)
	if err == nil && !ok {
		err = fmt.Errorf("%s.key: a key that signs nothing", caPath)
	}
	return certificate, key, err
}

func makeAuthority(caPath string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := template(1, "rig machines CA")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	if err := os.WriteFile(caPath+".key", text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(caPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644)
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour)}
}
