-- Create the database and its role when PostgreSQL's container first starts, with an empty volume.
--
-- The role owns its database and has no other privileges. It gets the password with which the image
-- created the superuser `postgres`. The superuser then has no password, so only programs that can use
-- the local socket can act as the superuser.
\getenv password POSTGRES_PASSWORD
CREATE ROLE survey LOGIN PASSWORD :'password';
CREATE DATABASE survey OWNER survey;
REVOKE CONNECT ON DATABASE survey, postgres FROM PUBLIC;
ALTER ROLE postgres PASSWORD NULL;
