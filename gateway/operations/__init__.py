"""Operations by plain HTTP: `POST /operations/{name}`, queries also by GET, and the OpenAPI document of them."""
